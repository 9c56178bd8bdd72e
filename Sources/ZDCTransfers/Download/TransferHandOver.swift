internal import Dispatch
package import Foundation
package import ZDCClientAPI
package import ZDCProtocol
internal import ZDCSupport

/// Hands transfers over to the system while the app is away, and takes over what the system did.
///
/// The tables hold all state that must survive: a download that outlives its process, the key and the hash of each part
/// of an upload, the request in flight. This object only knows which of them the system holds. The system itself keeps
/// that list between launches. Everything that it does may also be done by this process, or by both: an answer is
/// verified like any other, and the server recognizes repeated parts and commits.
package final class TransferHandOver: Sendable {
  /// Thrown in a transfer of this process when the system has it.
  struct HandedOver: Error {}

  /// The maximum size of all files that wait to be sent, in bytes.
  package static let stagedBytes = 256 << 20
  /// The maximum number of transfers that the system holds.
  package static let mostTransfers = 200
  /// How long the system may take to confirm that it has stopped a transfer.
  private static let cancelLimit = Duration.seconds(10)

  private let system: (any SystemTransfers)?
  private let partials: PartialFolder
  /// Files that wait to be sent. It also exists while only downloads are handed over: a launch that finds it asks the
  /// system which transfers it holds.
  private let folder: URL
  private let stagedBytes: Int
  private let state = Locked(HandOverState())
  private let changes = Broadcast<Void>(limit: 1)

  package enum Absence: Sendable {
    /// The app is in use.
    case none
    /// The system may have downloads.
    case downloads
    /// The system may have downloads and uploads.
    case everything
  }

  package typealias UploadID = UUID

  /// - Parameters:
  ///   - system: nil on a platform that does not suspend apps.
  ///   - partials: the folder for the content that the system fetches.
  ///   - folder: the folder for the requests that the system sends. No other object uses it.
  package init(
    system: (any SystemTransfers)?, partials: PartialFolder, folder: URL,
    stagedBytes: Int = TransferHandOver.stagedBytes
  ) {
    self.stagedBytes = stagedBytes
    self.system = system
    self.partials = partials
    self.folder = folder
  }

  /// A hand-over that never happens.
  package static var unavailable: TransferHandOver {
    let folder = FileManager.default.temporaryDirectory
    return TransferHandOver(system: nil, partials: PartialFolder(url: folder), folder: folder)
  }

  // MARK: Leaving and returning

  /// Whether there is a system to hand over to.
  package var isPossible: Bool { system != nil }

  /// Whether uploads are to be handed over now.
  package var handsUploadsOver: Bool { state.withLock { $0.absence == .everything } }

  /// Begins handing over. Uploads in progress notice it and hand their parts over; the caller hands over the rest.
  ///
  /// - Returns: false if there is no system to hand over to.
  package func begin(_ absence: Absence) async throws -> Bool {
    guard system != nil, !state.withLock({ $0.isStopped }) else { return false }
    await load()
    do {
      try FileManager.default.createDirectory(
        at: folder, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
    } catch { throw ZDCError(.fileFailure, underlying: error) }
    connect()
    state.withLock { $0.begin(absence) }
    changes.send(())
    return true
  }

  /// Call this when the app is active again. Each transfer of this process takes back its parts from the system, and
  /// continues.
  package func end() {
    state.withLock { $0.absence = .none }
    changes.send(())
  }

  /// Ends everything, because the database closes. Also confirms the system's events as handled, because the system
  /// waits for that.
  package func stop() {
    let handled = state.withLock { state in
      state.isStopped = true
      state.absence = .none
      // The block retains the managers, which retain this object.
      state.finish = nil
      return state.takeEventsHandled()
    }
    changes.close()
    system?.disconnect()
    Self.call(handled)
  }

  // MARK: Transfers of this process

  /// Waits while the app is away and the system has transfers of this subject. Otherwise takes them back. Call this
  /// before requests for the subject.
  ///
  /// - Returns: whether the system had any.
  @discardableResult
  package func enter(_ subject: SystemTransferID.Subject) async throws -> Bool {
    guard system != nil else { return false }
    await load()
    guard state.withLock({ $0.holds(subject) }) else { return false }
    try await wait { !$0.isStopped && $0.absence == .none || !$0.holds(subject) }
    await withdraw(subject)
    return true
  }

  /// - Throws: ``HandedOver`` if the app is away and the system has transfers of this subject.
  package func check(_ subject: SystemTransferID.Subject) throws {
    guard system != nil else { return }
    if state.withLock({ $0.absence != .none && $0.holds(subject) }) { throw HandedOver() }
  }

  /// Stops the system's transfers of this subject. They have ended when this returns, but the server may have received
  /// any of them.
  package func withdraw(_ subject: SystemTransferID.Subject) async {
    // The next launch withdraws the transfers that the system still has when the database closes.
    guard let system, !state.withLock({ $0.isStopped }) else { return }
    await load()
    guard state.withLock({ $0.holds(subject) }) else { return }
    await withTaskGroup(of: Void.self) { group in
      group.addTask { await self.cancel(subject, system) }
      group.addTask { do { try await Task.sleep(for: Self.cancelLimit) } catch {} }
      await group.next()
      group.cancelAll()
    }
    // The system does not know the rest any more.
    for id in state.withLock({ $0.held.keys.filter { $0.subject == subject } }) { ended(id) }
  }

  private func cancel(_ subject: SystemTransferID.Subject, _ system: any SystemTransfers) async {
    do {
      try await wait { state in state.held.allSatisfy { $0.key.subject != subject || $0.value.isStarted } }
      await system.cancel(Set(state.withLock { $0.held.keys.filter { $0.subject == subject } }.map(\.text)))
      try await wait { !$0.holds(subject) }
    } catch {}
  }

  /// Waits until the app is away or in use again.
  package func waitForAbsence(_ isAway: Bool) async throws {
    try await wait { ($0.absence == .everything) == isAway }
  }

  private func wait(until isOver: @escaping @Sendable (HandOverState) -> Bool) async throws {
    let changes = changes.stream(limit: 1)
    if state.withLock({ isOver($0) }) { return }
    for await _ in changes where state.withLock({ isOver($0) }) { return }
    // The task is cancelled, or the database closes.
    throw CancellationError()
  }

  // MARK: Uploads

  /// Registers an upload, which hands over its parts when ``handsUploadsOver`` becomes true.
  package func join() -> UploadID {
    let id = UploadID()
    state.withLock { $0.uploads[id] = false }
    return id
  }

  package func leave(_ id: UploadID) {
    state.withLock { $0.uploads[id] = nil }
    changes.send(())
  }

  /// Records that an upload has handed over what it can.
  package func staged(_ id: UploadID, _ error: (any Error)? = nil) {
    state.withLock { state in
      if state.uploads[id] != nil { state.uploads[id] = true }
      state.stagingError = state.stagingError ?? error
    }
    changes.send(())
  }

  /// Waits until all uploads in progress have handed over what they can.
  ///
  /// - Throws: the first error that prevented it. The uploads continue when the app returns.
  package func uploadsAreStaged() async throws {
    try await wait { $0.absence != .everything || $0.uploads.values.allSatisfy { $0 } }
    if let error = state.withLock({ $0.stagingError }) { throw error }
  }

  /// Records that a commit request is about to be handed over.
  package func announce(_ commit: CommitHash) {
    guard system != nil else { return }
    state.withLock { $0.commits[commit, default: 0] += 1 }
  }

  /// Returns how often this process has handed a commit request over. If the number has changed since a request was
  /// sent, its answer is not final: the system may have sent the request after it.
  package func handOvers(of commit: CommitHash) -> Int { state.withLock { $0.commits[commit] ?? 0 } }

  package func forget(_ commit: CommitHash) { state.withLock { $0.commits[commit] = nil } }

  // MARK: Handing over

  /// Hands a download over. Does nothing if the system has it.
  ///
  /// - Returns: false if the system holds as many transfers as it may, or the app is back.
  package func download(_ transfer: SystemTransfer) async throws -> Bool {
    guard let system, let isNew = reserve(transfer.id, 0) else { return false }
    if isNew { try await start(transfer, system) }
    return true
  }

  /// Writes bytes to a file and hands the request that sends them over. Does nothing if the system has it.
  ///
  /// - Parameter transfer: returns the request for the file.
  /// - Returns: false if the files would be too large together, or the app is back.
  package func upload(
    _ id: SystemTransferID, _ bytes: [UInt8], _ transfer: (URL) async throws -> SystemTransfer
  ) async throws -> Bool {
    guard let system, let isNew = reserve(id, bytes.count) else { return false }
    guard isNew else { return true }
    do {
      try write(bytes, to: file(id.text))
      try await start(try await transfer(file(id.text)), system)
    } catch {
      ended(id)
      throw error
    }
    return true
  }

  /// - Returns: nil if there is no room; otherwise whether the system does not have the transfer yet.
  private func reserve(_ id: SystemTransferID, _ bytes: Int) -> Bool? {
    state.withLock { state in
      if state.held[id] != nil { return false }
      guard state.absence != .none, state.canHold(bytes, limit: stagedBytes) else { return nil }
      state.held[id] = HandOverState.Held(bytes: bytes, isStarted: false)
      return true
    }
  }

  private func start(_ transfer: SystemTransfer, _ system: any SystemTransfers) async throws {
    do {
      try await system.start(transfer)
    } catch {
      ended(transfer.id)
      throw error
    }
    state.withLock { $0.held[transfer.id]?.isStarted = true }
    changes.send(())
  }

  private func write(_ bytes: [UInt8], to file: URL) throws {
    DownloadFolder.remove(file)
    let staged = try LocalFile.create(file)
    try staged.write(bytes)
  }

  private func file(_ name: String) -> URL { folder.appendingPathComponent(name, isDirectory: false) }

  // MARK: The system's reports

  private func connect() {
    system?.connect(
      SystemTransferEvents(
        received: { [weak self] in self?.received($0, status: $1, $2) },
        ended: { [weak self] text in if let id = SystemTransferID(text: text) { self?.ended(id) } },
        allDelivered: { [weak self] in self?.allDelivered() }))
  }

  /// Keeps an answer that has the expected form. Another one, such as the page of a captive portal, is dropped, and the
  /// ordinary transfer asks again.
  private func received(_ text: String, status: Int, _ file: URL) {
    guard let id = SystemTransferID(text: text), [200, 206].contains(status) else { return }
    do {
      let size = try LocalFile.read(file).size()
      switch id {
      case .content(let blob, let range) where size == UInt64(range.count):
        try partials.leave(file, of: blob, from: range.lowerBound)
      case .proof(let blob, let leaves) where size <= UInt64(Limits.leafProofBytes):
        try partials.leave(file, of: blob, leaves: leaves)
      default: return
      }
    } catch { return }
  }

  private func ended(_ id: SystemTransferID) {
    DownloadFolder.remove(file(id.text))
    state.withLock { state in
      state.held[id] = nil
      state.endedEarly?.insert(id)
    }
    changes.send(())
  }

  /// Learns once what earlier launches handed over, and removes files that the system does not need.
  private func load() async {
    let loading = state.withLock { state in
      let loading = state.loading ?? Task { await self.sweep() }
      state.loading = loading
      return loading
    }
    await loading.value
  }

  private func sweep() async {
    defer { state.withLock { $0.endedEarly = nil } }
    let names: [String]
    do { names = try FileManager.default.contentsOfDirectory(atPath: folder.path) } catch { return }
    guard let system else { return }
    connect()
    let pending = await system.pending()
    var sizes: [SystemTransferID: Int] = [:]
    for id in pending.compactMap({ SystemTransferID(text: $0) }) { sizes[id] = size(of: id) }
    state.withLock { state in
      for (id, bytes) in sizes where state.endedEarly?.contains(id) == false {
        state.held[id] = HandOverState.Held(bytes: bytes, isStarted: true)
      }
    }
    for name in names where !pending.contains(name) { DownloadFolder.remove(file(name)) }
    // The next launch need not ask the system. A folder that cannot be removed costs it only the question.
    if pending.isEmpty { DownloadFolder(existing: folder).removeIfEmpty() }
  }

  private func size(of id: SystemTransferID) -> Int {
    do { return Int(try LocalFile.read(file(id.text)).size()) } catch { return 0 }
  }

  // MARK: Launches by the system

  /// Sets the block that processes the results before the app calls the system's completion handler.
  package func whenDelivered(_ finish: @escaping @Sendable () async -> Void) { state.withLock { $0.finish = finish } }

  /// Takes over the events of the system's session.
  ///
  /// - Parameter handled: called on the main queue once the results are handled.
  /// - Returns: false if the session belongs to something else.
  package func takeEvents(ofSession identifier: String, _ handled: @escaping @Sendable () -> Void) -> Bool {
    guard let system, system.identifier == identifier else { return false }
    let isStopped = state.withLock { state in
      if !state.isStopped { state.eventsHandled = handled }
      return state.isStopped
    }
    if isStopped { Self.call(handled) } else { connect() }
    return true
  }

  private func allDelivered() {
    let finish = state.withLock { $0.finish }
    Task {
      await finish?()
      Self.call(state.withLock { $0.takeEventsHandled() })
    }
  }

  private static func call(_ handled: (@Sendable () -> Void)?) {
    if let handled { DispatchQueue.main.async(execute: handled) }
  }
}
