internal import Foundation
internal import ZDCServer

/// What the processes of a server announce to each other.
enum FeedEntry: Sendable, Codable {
  case announcement(Announcement)
  /// The queue of a busy zone has changed.
  case turn(TurnChange)

  /// A longer page of a commit is left out: the clients ask for it.
  private static let longestPage = 8 << 10

  /// Returns the columns of the entry's row. Pages have their own, because text would be a third longer.
  func encoded() throws -> (entry: [UInt8], page: [UInt8]?) {
    let bytes = [UInt8](try JSONEncoder().encode(self))
    guard case .announcement(.head(let notice)) = self, let page = notice.page, page.count <= Self.longestPage else {
      return (bytes, nil)
    }
    return (bytes, page)
  }

  init(entry: [UInt8], page: [UInt8]?) throws {
    self = try JSONDecoder().decode(FeedEntry.self, from: Data(entry))
    guard let page, case .announcement(.head(var notice)) = self else { return }
    notice.page = page
    self = .announcement(.head(notice))
  }
}
