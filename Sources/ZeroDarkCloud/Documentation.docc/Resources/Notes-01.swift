import Foundation
import ZeroDarkCloud

/// A note as the app keeps it. The cloud gets its JSON.
struct Note: Codable, Sendable, Equatable {
  static let collection = "notes"

  var id = UUID().uuidString
  var title: String
  var lines: [String] = []
}
