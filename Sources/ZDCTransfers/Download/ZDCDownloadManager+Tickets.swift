package import Foundation
internal import ZDCClientStore

extension ZDCDownloadManager {
  /// Runs a download that its caller awaits.
  func withBackgroundRegistration<Value: Sendable>(
    _ key: DownloadKey, _ options: ZDCDownloadOptions.Values, _ fetch: () async throws -> Value
  ) async throws -> Value {
    let attendance = background.attend(key, options)
    do {
      try await attendance.begin()
      let value = try await fetch()
      await attendance.end(wasServed: true)
      return value
    } catch {
      await attendance.end(wasServed: false)
      throw error
    }
  }

  /// Runs a download with a completion block. The block is called once, on its queue, if the caller still wants the
  /// result and its turn comes within its tag.
  package func run<Value: Sendable>(
    _ key: DownloadKey, _ options: ZDCDownloadOptions.Values, _ queue: DispatchQueue?,
    _ fetch: @escaping @Sendable (ZDCDownloadTicket) async throws -> Value,
    discard: @escaping @Sendable (Value) -> Void,
    complete: @escaping @Sendable (Result<Value, any Error>) -> Void
  ) -> ZDCDownloadTicket {
    let ticket = ZDCDownloadTicket()
    let transactionEnd = TransactionEnd.ofCurrent(database.context)
    let attendance = background.attend(key, options)
    let member = options.completionTag.map { TagMember(tags, .init(download: key, tag: $0)) }
    let task = Task {
      let result: Result<Value, any Error>
      do {
        try await transactionEnd?.committed()
        try await attendance.begin()
        result = .success(try await fetch(ticket))
      } catch { result = .failure(error) }
      let completion = Completion(
        result: result, ticket: ticket, attendance: attendance, member: member, queue: queue ?? .main,
        discard: discard, complete: complete)
      completion.arrive()
    }
    ticket.begin(task) {
      attendance.endSoon(wasServed: false)
      member?.leave()
    }
    return ticket
  }
}

/// A ticket's place in the group of its tag.
private struct TagMember: Sendable {
  private let tags: CompletionTags
  private let group: CompletionTags.Group
  private let id: Int

  init(_ tags: CompletionTags, _ group: CompletionTags.Group) {
    self.tags = tags
    self.group = group
    id = tags.join(group)
  }

  func arrive(_ outcome: CompletionTags.Outcome) { tags.arrive(group, id, outcome) }
  func leave() { tags.leave(group, id) }
  func takeTurn() -> Bool { tags.takeTurn(group, id) }
}

/// A result on its way to its completion block. Whether the block is called is decided on its queue, at the last
/// moment: a caller that ignores a ticket there is not called afterwards.
private struct Completion<Value: Sendable>: Sendable {
  let result: Result<Value, any Error>
  let ticket: ZDCDownloadTicket
  let attendance: BackgroundDownloads.BackgroundRegistration
  let member: TagMember?
  let queue: DispatchQueue
  let discard: @Sendable (Value) -> Void
  let complete: @Sendable (Result<Value, any Error>) -> Void

  func arrive() {
    guard let member, !ticket.isCancelled else { return deliver() }
    // The block of a cancelled ticket is called regardless of its tag.
    member.arrive(.init(deliver: deliver, drop: { ticket.isCancelled ? deliver() : drop() }))
  }

  private func deliver() {
    queue.async {
      if ticket.isIgnored { return drop() }
      // A cancelled ticket does not depend on its tag, even if it was cancelled only a moment ago.
      guard ticket.isCancelled || member?.takeTurn() ?? true || ticket.isCancelled else { return drop() }
      complete(result)
      attendance.endSoon(wasServed: (try? result.get()) != nil)
    }
  }

  private func drop() {
    if case .success(let value) = result { discard(value) }
    attendance.endSoon(wasServed: true)
  }
}
