import TodoKit
import ZeroDarkCloud

/// The content that a browser has, and the content that it gets next.
actor LiveContent {
  private var page: Page
  private var seen: String?
  private var rows: HTML.RowVersions = [:]
  private var isRead = false
  private var (isProgressDue, isProgressShown) = (false, false)

  /// - Parameters:
  ///   - page: The page without its screen.
  ///   - seen: The version of the content that the browser has.
  init(_ page: Page, seen: String?) { (self.page, self.seen) = (page, seen) }

  /// - Returns: Whether the progress must be shown later. If it will be shown anyway, that includes this change.
  func needsProgress() -> Bool {
    defer { isProgressDue = true }
    return !isProgressDue
  }

  /// Makes the next reading show the progress.
  func showProgress() { (isProgressDue, isProgressShown) = (false, true) }

  /// Reads the screen.
  ///
  /// - Returns: Whether the page must be sent now: it has news, or shows progress.
  func read(_ account: Account) async throws -> Bool {
    let isShown = isProgressShown || !isRead
    isProgressShown = false
    let screen = try await account.screen(list: page.place.listID, withActivity: page.place == .activity)
    let taskListID = try await listID(account)
    defer { (page.screen, page.taskListID, isRead) = (screen, taskListID, true) }
    return isShown || taskListID != page.taskListID || screen.hasNews(since: page.screen)
  }

  private func listID(_ account: Account) async throws -> String? {
    guard let task = page.place.taskID else { return nil }
    return try await account.listID(ofTask: task)
  }

  /// - Returns: Whether the state has changed, and with it perhaps the badges of the screen.
  func set(_ sync: ZDCSyncState) -> Bool {
    defer { page.sync = sync }
    return sync != page.sync
  }

  /// - Returns: Whether there are others than before.
  func set(_ senders: [UnknownSender]?) -> Bool {
    defer { page.senders = senders }
    return senders != page.senders
  }

  /// Returns what has changed in the content, or nil if the browser has it or no screen was read yet.
  func update(_ account: Account) throws -> Live.Event? {
    guard isRead else { return nil }
    page.person = try page.place.userID(own: page.user).map(account.people.person)
    let content = page.content
    let (known, isSeen) = (rows, content.version == seen)
    if isSeen && !known.isEmpty { return nil }
    (seen, rows) = (content.version, content.rowVersions)
    return isSeen ? nil : Live.Event(id: content.version, data: content.text(without: known))
  }
}
