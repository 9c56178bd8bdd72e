public import Foundation

/// The app's side of a node: what a test device stores for it, in the device's own database, and uploads when it is
/// asked.
public struct TestContent: Codable, Sendable, Hashable {
  /// The collection that these are in; keys are the nodes' uuids.
  public static let collection = "zdc.testing"

  public var data: Data
  public var metadata: Data?
  public var thumbnail: Data?
  /// The version in the cloud that `data` is, or that it was made from.
  public var eTag: String?

  public init(data: Data, metadata: Data? = nil, thumbnail: Data? = nil, eTag: String? = nil) {
    self.data = data
    self.metadata = metadata
    self.thumbnail = thumbnail
    self.eTag = eTag
  }

  public init(_ text: String) { self.init(data: Data(text.utf8)) }

  /// Every line of both, each once, sorted: a merge that loses nothing and comes out the same on every device.
  func merged(with other: Data) -> Data {
    let lines = Set([data, other].flatMap { String(decoding: $0, as: UTF8.self).split(separator: "\n") })
    return Data(lines.sorted().joined(separator: "\n").utf8)
  }

  /// For a dump: short texts in quotes, anything else by its size.
  var shown: String {
    if data.isEmpty { return "" }
    guard data.count <= 60, let text = String(data: data, encoding: .utf8) else { return "(\(data.count) bytes)" }
    return "\"\(text.replacingOccurrences(of: "\n", with: "|"))\""
  }
}
