internal import Foundation
internal import ZDCProtocol
internal import ZDCServer

/// An announcement of one process of a server to all of them.
enum FeedEntry: Sendable, Codable {
  case announcement(Announcement)
  /// The queue of a busy zone has changed.
  case turn(TurnChange)
  /// A device link has an answer, or its nonce.
  case link(DeviceLinkID)

  /// Returns the columns of the entry's row. Pages have their own, because text would be a third longer.
  func encoded() throws -> (entry: [UInt8], page: [UInt8]?) {
    let bytes = [UInt8](try JSONEncoder().encode(self))
    guard case .announcement(.head(let notice)) = self else { return (bytes, nil) }
    return (bytes, notice.page)
  }

  /// An entry that this version cannot decode, as a newer version may append one, stands for anything.
  init(stored entry: [UInt8], page: [UInt8]?) {
    do { try self.init(entry: entry, page: page) } catch { self = .announcement(.unknown) }
  }

  private init(entry: [UInt8], page: [UInt8]?) throws {
    self = try JSONDecoder().decode(FeedEntry.self, from: Data(entry))
    guard let page, case .announcement(.head(var notice)) = self else { return }
    notice.page = page
    self = .announcement(.head(notice))
  }
}
