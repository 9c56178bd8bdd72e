package import Foundation
internal import Synchronization
package import ZeroDarkCloud

/// A service that makes requests for an app that is suspended or has ended, as phones have one: with a queue and
/// connections of its own, which outlive the app's process.
///
/// It makes no request before ``run(_:)``, so that a test decides what happens while the app is away.
package final class TransferService: SystemTransfers {
  private struct Report: Sendable {
    var id: String
    var answer: (status: Int, file: URL)?
  }

  private struct State {
    var queue: [SystemTransfer] = []
    var reports: [Report] = []
    var events: SystemTransferEvents?
    var answers: [String] = []
    var isRefusing = false
    var token: String?
  }

  package let identifier = "test.transfers"
  private let folder: TemporaryFolder
  private let state = Mutex(State())

  package init() throws {
    folder = try TemporaryFolder()
  }

  // MARK: SystemTransfers

  package func connect(_ events: SystemTransferEvents) {
    let isNew = state.withLock { state in
      defer { state.events = state.events ?? events }
      return state.events == nil
    }
    if isNew { deliver() }
  }

  package func start(_ transfer: SystemTransfer) async throws {
    try state.withLock { state in
      guard !state.isRefusing else { throw TestFailure("the service takes nothing") }
      state.queue.append(transfer)
    }
  }

  package func pending() async -> [String] {
    state.withLock { $0.queue.map(\.id.text) + $0.reports.map(\.id) }
  }

  package func cancel(_ ids: Set<String>) async {
    state.withLock { state in
      for transfer in state.queue where ids.contains(transfer.id.text) {
        state.reports.append(Report(id: transfer.id.text))
      }
      state.queue.removeAll { ids.contains($0.id.text) }
    }
    deliver()
  }

  /// The transfers stay, as when a process ends.
  package func disconnect() { state.withLock { $0.events = nil } }

  // MARK: While the app is away

  /// The IDs of the transfers that wait, in order.
  package var waiting: [String] { state.withLock { $0.queue.map(\.id.text) } }

  /// The files of the transfers that wait.
  package var files: [URL] { state.withLock { $0.queue.compactMap(\.file) } }

  /// The files with answers that no process has seen.
  package var answerFiles: [URL] { state.withLock { $0.reports.compactMap { $0.answer?.file } } }

  /// The outcome of each request so far: its ID and the server's status.
  package var answers: [String] { state.withLock { $0.answers } }

  /// Whether the service accepts no transfers.
  package var isRefusing: Bool {
    get { state.withLock { $0.isRefusing } }
    set { state.withLock { $0.isRefusing = newValue } }
  }

  /// A token to send instead of that of each transfer, such as an expired one; nil for none.
  package var token: String? {
    get { state.withLock { $0.token } }
    set { state.withLock { $0.token = newValue } }
  }

  /// Makes up to `count` of the waiting requests.
  package func run(_ count: Int = .max) async throws {
    var done = 0
    while done < count, let transfer = takeFirst() {
      try await run(transfer)
      done += 1
    }
    deliver()
  }

  /// Drops all transfers without a report, as when the user ends the app.
  package func forgetAll() {
    state.withLock { state in
      state.queue = []
      state.reports = []
    }
  }

  private func takeFirst() -> SystemTransfer? {
    state.withLock { $0.queue.isEmpty ? nil : $0.queue.removeFirst() }
  }

  private func run(_ transfer: SystemTransfer) async throws {
    var request = transfer.request
    if let file = transfer.file { request.body = .bytes([UInt8](try Data(contentsOf: file))) }
    if let token { request.headers["authorization"] = "Bearer \(token)" }
    let response = try await AsyncHTTPTransport(serverURL: transfer.origin).send(request)
    let body = Data(try await response.body.collect(upTo: 1 << 30))
    let file = folder.url.appendingPathComponent(UUID().uuidString)
    try body.write(to: file)
    state.withLock { state in
      state.answers.append("\(transfer.id.text.prefix { $0 != "-" }) \(response.status)")
      let answer = transfer.file == nil ? (response.status, file) : nil
      state.reports.append(Report(id: transfer.id.text, answer: answer))
    }
  }

  /// Reports what no process has seen, if one is connected.
  private func deliver() {
    let (events, reports) = state.withLock { state -> (SystemTransferEvents?, [Report]) in
      guard state.events != nil else { return (nil, []) }
      defer { state.reports = [] }
      return (state.events, state.reports)
    }
    guard let events, !reports.isEmpty else { return }
    for report in reports {
      if let answer = report.answer { events.received(report.id, answer.status, answer.file) }
      events.ended(report.id)
    }
    events.allDelivered()
  }
}
