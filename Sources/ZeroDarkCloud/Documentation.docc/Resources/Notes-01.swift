import Foundation
import ZeroDarkCloud

/// A note as the app stores it. The cloud receives its JSON.
struct Note: Codable, Sendable, Equatable {
  static let collection = "notes"

  var id = UUID().uuidString
  var title: String
  var lines: [String] = []
}
