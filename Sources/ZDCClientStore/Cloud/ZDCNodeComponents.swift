/// The parts of a node's content that an app wants to have.
public struct ZDCNodeComponents: OptionSet, Sendable, Hashable {
  public let rawValue: Int

  public init(rawValue: Int) {
    self.rawValue = rawValue
  }

  public static let header = ZDCNodeComponents(rawValue: 1)
  public static let metadata = ZDCNodeComponents(rawValue: 2)
  public static let thumbnail = ZDCNodeComponents(rawValue: 4)
  public static let data = ZDCNodeComponents(rawValue: 8)
  public static let all: ZDCNodeComponents = [.header, .metadata, .thumbnail, .data]
}
