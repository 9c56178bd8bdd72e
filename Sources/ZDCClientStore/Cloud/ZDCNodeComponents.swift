/// The parts of a node's content that an app wants to have.
///
/// ```swift
/// cloud.markNodeAsNeedsDownload(node.uuid, components: [.metadata, .thumbnail])
/// ```
public struct ZDCNodeComponents: OptionSet, Sendable, Hashable {
  /// The set as bits.
  public let rawValue: Int

  /// Creates a set from bits. Apps use the named components.
  public init(rawValue: Int) {
    self.rawValue = rawValue
  }

  /// The sizes and dates of the content, without the content itself.
  public static let header = ZDCNodeComponents(rawValue: 1)
  /// The metadata section that the app stored with the content.
  public static let metadata = ZDCNodeComponents(rawValue: 2)
  /// The thumbnail section.
  public static let thumbnail = ZDCNodeComponents(rawValue: 4)
  /// The data section.
  public static let data = ZDCNodeComponents(rawValue: 8)
  /// All four parts.
  public static let all: ZDCNodeComponents = [.header, .metadata, .thumbnail, .data]
}
