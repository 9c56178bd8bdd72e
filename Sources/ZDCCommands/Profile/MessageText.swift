internal import Foundation

/// The text of a message that is queued, stored under the message's uuid.
struct MessageText: Codable, Sendable, Hashable {
  static let collection = "zdc.messages"

  var bytes: Data
}
