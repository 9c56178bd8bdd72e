import TodoKit
import ZeroDarkCloud

/// Follows everything that a page shows, and sends its content when that has changed.
struct PageUpdates: Sendable {
  private let page: Page
  private let account: Account
  private let content: LiveContent
  private let send: @Sendable (@escaping Live.Next) -> Void
  // One reading at a time: with two, the page could get the older screen after the newer one.
  private let readings = AsyncStream<Void>.makeStream(bufferingPolicy: .bufferingNewest(1))
  private let progress = AsyncStream<Void>.makeStream(bufferingPolicy: .bufferingNewest(1))
  /// Ends when commits are observed.
  private let beginning = AsyncStream<Never>.makeStream()

  /// While a change is sent or received, its progress changes several times within milliseconds. The browser is shown the
  /// change first.
  private static let pauseForProgress = Duration.milliseconds(100)
  /// The messages of unknown senders are not part of the database: the server is asked for them.
  private static let pauseBetweenRequests = Duration.seconds(5)

  /// - Parameters:
  ///   - page: The page without its screen.
  ///   - seen: The version of the content that the browser has.
  init(
    of page: Page, _ account: Account, seen: String?, _ send: @escaping @Sendable (@escaping Live.Next) -> Void
  ) {
    (self.page, self.account, self.send) = (page, account, send)
    content = LiveContent(page, seen: seen)
  }

  /// Runs until its task is cancelled.
  func run() async throws {
    try await withThrowingDiscardingTaskGroup { group in
      group.addTask { try await followCommits() }
      group.addTask { try await followChanges() }
      group.addTask { try await followSync() }
      group.addTask { try await followSenders() }
      group.addTask { try await showProgress() }
      group.addTask { for await _ in readings.stream where try await content.read(account) { update() } }
    }
  }

  /// Only events that are sent are made: each is the difference from the one before.
  private func update() { send { try await content.update(account) } }

  private func showLater() async { if await content.needsProgress() { progress.continuation.yield() } }

  private func followCommits() async throws {
    var commits = account.commits().makeAsyncIterator()
    _ = try await commits.next()
    beginning.continuation.finish()  // the first screen shows all commits until now
    while try await commits.next() != nil { await showLater() }
  }

  private func followChanges() async throws {
    for await _ in beginning.stream {}
    for try await _ in account.changes() { readings.continuation.yield() }
  }

  private func followSync() async throws {
    for try await sync in account.session.syncManager.syncStates(forLocalUserID: page.user)
    where await content.set(sync) {
      await showLater()
    }
  }

  private func followSenders() async throws {
    while true {
      if await content.set(try await Live.unknownSenders(account)) { update() }
      try await _Concurrency.Task.sleep(for: Self.pauseBetweenRequests)
    }
  }

  private func showProgress() async throws {
    for await _ in progress.stream {
      try await _Concurrency.Task.sleep(for: Self.pauseForProgress)
      await content.showProgress()
      readings.continuation.yield()
    }
  }
}
