internal import Foundation

extension ZDCDownloadManager {
  /// A download that its caller awaits.
  func attended<Value: Sendable>(
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

  /// A download with a completion block: called once, on its queue, if the caller still wants to know and is the one
  /// who speaks for his tag.
  func run<Value: Sendable>(
    _ key: DownloadKey, _ options: ZDCDownloadOptions.Values, _ queue: DispatchQueue?,
    _ fetch: @escaping @Sendable (ZDCDownloadTicket) async throws -> Value,
    discard: @escaping @Sendable (Value) -> Void,
    complete: @escaping @Sendable (Result<Value, any Error>) -> Void
  ) -> ZDCDownloadTicket {
    let ticket = ZDCDownloadTicket()
    let attendance = background.attend(key, options)
    let group = options.completionTag.map { CompletionTags.Group(download: key, tag: $0) }
    let speaker = group.map { tags.join($0) }
    let task = Task {
      let result: Result<Value, any Error>
      do {
        try await attendance.begin()
        result = .success(try await fetch(ticket))
      } catch { result = .failure(error) }
      guard speaks(group, speaker, ticket) else {
        if case .success(let value) = result { discard(value) }
        return await attendance.end(wasServed: true)
      }
      (queue ?? .main).async {
        complete(result)
        attendance.endSoon(wasServed: (try? result.get()) != nil)
      }
    }
    ticket.begin(task) { [tags] in
      if let group, let speaker { tags.leave(group, speaker) }
      attendance.endSoon(wasServed: false)
    }
    return ticket
  }

  /// Who has withdrawn hears so himself; he does not speak for others.
  private func speaks(_ group: CompletionTags.Group?, _ speaker: Int?, _ ticket: ZDCDownloadTicket) -> Bool {
    if ticket.isIgnored { return false }
    guard let group, let speaker else { return true }
    return tags.speaks(group, speaker) || ticket.isCancelled
  }
}
