import Foundation
import ZDCMerge

/// The app's model: a list with a title. The cloud stores it as JSON.
struct Sheet: ZDCRecord, Codable, Sendable, Equatable {
  @Syncable var title: String
  var items: ZDCOrderedSet<String> = []

  static var syncableFields: [ZDCField<Sheet>] {
    [ZDCField("title", \._title), ZDCField("items", \.items)]
  }

  static let collection = "sheets"

  var json: Data {
    get throws { try JSONEncoder().encode(self) }
  }

  /// `Groceries [milk, bread]`
  var text: String { "\(title) [\(items.rawArray.joined(separator: ", "))]" }
}
