public import Foundation

/// The app's content of a node. A test device stores it in its own database and uploads it when the framework asks for
/// it.
public struct TestContent: Codable, Sendable, Hashable {
  /// The collection of these objects. Keys are the nodes' uuids.
  public static let collection = "zdc.testing"

  /// The data section.
  public var data: Data
  /// The metadata section; nil for none.
  public var metadata: Data?
  /// The thumbnail section; nil for none.
  public var thumbnail: Data?
  /// The cloud version that `data` equals or is based on.
  public var eTag: String?

  /// Creates content with its sections.
  ///
  /// - Parameter eTag: The version in the cloud that the content is based on; nil for content that was never there.
  public init(data: Data, metadata: Data? = nil, thumbnail: Data? = nil, eTag: String? = nil) {
    self.data = data
    self.metadata = metadata
    self.thumbnail = thumbnail
    self.eTag = eTag
  }

  /// Creates content whose data is a text in UTF-8.
  public init(_ text: String) { self.init(data: Data(text.utf8)) }

  /// Returns all lines of both, each once, sorted. This merge loses nothing and has the same result on every device.
  func merged(with other: Data) -> Data {
    let lines = Set([data, other].flatMap { String(decoding: $0, as: UTF8.self).split(separator: "\n") })
    return Data(lines.sorted().joined(separator: "\n").utf8)
  }

  /// The text for a dump: short texts in quotes, anything else by its size.
  var shown: String {
    if data.isEmpty { return "" }
    guard data.count <= 60, let text = String(data: data, encoding: .utf8) else { return "(\(data.count) bytes)" }
    return "\"\(text.replacingOccurrences(of: "\n", with: "|"))\""
  }
}
