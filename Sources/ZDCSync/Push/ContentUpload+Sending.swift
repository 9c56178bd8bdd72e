internal import ZDCClientAPI
internal import ZDCCrypto
internal import ZDCProtocol
internal import ZDCSupport
internal import ZDCTransfers

// One attempt: sent by this process, by the system, or by both in turn.

extension ContentUpload {
  /// The maximum number of parts without an answer. Bounds the memory used beside the part being sealed. They are sent
  /// one after another, so that a slow line loses one part when the process is killed, and not several halves.
  private static let partsUnderWay = 2

  /// The state of the upload on the server.
  private struct Known: Sendable {
    /// The hashes of its parts by index; nil until it was asked.
    var parts: [Int: [UInt8]]?
    /// The number of its parts when parts were handed over last, in the same absence of the app.
    var partsAtHandOver: Int?

    /// Returns false if the system was given parts before and none of them has arrived: it cannot send them.
    mutating func mayHandOver() -> Bool {
      defer { partsAtHandOver = parts?.count }
      return partsAtHandOver.map { $0 < parts?.count ?? 0 } ?? true
    }
  }

  private typealias Parts = Locked<Known>

  /// The app went away while this process was sending.
  private struct WentAway: Error {}

  private enum Staged { case nothingMissing, handedOver, full }

  func send(_ source: Source, _ attempt: UploadAttempt) async throws -> SuppliedContent {
    let id = handOver.join()
    defer { handOver.leave(id) }
    var attempt = attempt
    let there = Parts(Known())
    while true {
      do {
        return try await send(source, attempt, there, id)
      } catch is WentAway {
        attempt = try await journal.attempt(attempt.blobID) ?? attempt
      }
    }
  }

  private func send(
    _ source: Source, _ attempt: UploadAttempt, _ there: Parts, _ id: TransferHandOver.UploadID
  ) async throws -> SuppliedContent {
    if try await handOver.enter(.blob(attempt.blobID)) { there.withLock { $0.parts = nil } }
    guard handOver.handsUploadsOver else {
      there.withLock { $0.partsAtHandOver = nil }
      return try await untilAway { try await sendInTurn(source, attempt, there) }
    }
    switch try await stage(source, attempt, there, id) {
    case .nothingMissing where handOver.handsUploadsOver: return try await sendInTurn(source, attempt, there)
    case .nothingMissing, .handedOver: break
    case .full: try await handOver.waitForAbsence(false)
    }
    throw WentAway()
  }

  // MARK: By this process

  private func untilAway(
    _ body: @escaping @Sendable () async throws -> SuppliedContent
  ) async throws -> SuppliedContent {
    guard handOver.isPossible else { return try await body() }
    return try await withThrowingTaskGroup(of: SuppliedContent.self) { group in
      group.addTask(operation: body)
      group.addTask { [handOver] in
        try await handOver.waitForAbsence(true)
        throw WentAway()
      }
      defer { group.cancelAll() }
      guard let content = try await group.next() else { throw CancellationError() }
      return content
    }
  }

  private func ask(_ source: Source, _ attempt: UploadAttempt, _ there: Parts) async throws {
    let status = try await api.openBlob(
      BlobTicketRequest(
        blobID: attempt.blobID, treeID: journal.tree, nodeID: journal.node, cipherLength: source.layout.cipherLength))
    let parts = Dictionary(status.parts.map { ($0.index, $0.hash.bytes) }, uniquingKeysWith: { $1 })
    there.withLock { $0.parts = parts }
  }

  private func askOnce(_ source: Source, _ attempt: UploadAttempt, _ there: Parts) async throws {
    if there.withLock({ $0.parts == nil }) { try await ask(source, attempt, there) }
  }

  private func sendInTurn(
    _ source: Source, _ attempt: UploadAttempt, _ there: Parts
  ) async throws -> SuppliedContent {
    try await slots.run(cipherLength: source.layout.cipherLength) { try await sendHere(source, attempt, there) }
  }

  private func sendHere(
    _ source: Source, _ attempt: UploadAttempt, _ there: Parts
  ) async throws -> SuppliedContent {
    try await askOnce(source, attempt, there)
    let sealer = try source.sealer(attempt)
    var parts = try PartSealer(source.data, sealer)
    try await sendParts(of: &parts, attempt, there, total: sealer.cipherLength)
    return try await complete(parts.fields, sealer)
  }

  private func sendParts(
    of parts: inout PartSealer, _ attempt: UploadAttempt, _ there: Parts, total: UInt64
  ) async throws {
    // Resuming gains nothing for content of one part, so it is not recorded and starts over.
    let isRecorded = ContentGeometry.partCount(cipherLength: total) > 1
    var sent: UInt64 = 0
    func count(_ part: PartSealer.Part) {
      sent += UInt64(part.bytes.count)
      progress(sent, total)
    }
    try await withThrowingTaskGroup(of: PartSealer.Part.self) { group in
      var underWay = 0
      var before = AsyncStream<Void> { $0.finish() }
      while let part = try parts.next() {
        try Task.checkCancellation()
        if underWay == Self.partsUnderWay, let done = try await group.next() {
          underWay -= 1
          count(done)
          parts.reuse(done)
        }
        guard try await mustSend(part, attempt, there, isRecorded: isRecorded) else {
          count(part)
          continue
        }
        let (taken, end) = AsyncStream<Void>.makeStream()
        group.addTask { [before] in
          defer { end.finish() }
          for await _ in before {}
          return try await put(part, attempt, there) { end.finish() }
        }
        before = taken
        underWay += 1
      }
      for try await done in group { count(done) }
    }
  }

  private func put(
    _ part: PartSealer.Part, _ attempt: UploadAttempt, _ there: Parts, taken: @escaping @Sendable () -> Void
  ) async throws -> PartSealer.Part {
    try await TransferRetry.run {
      try await api.putPart(attempt.blobID, index: part.index, bytes: part.bytes, hash: part.hash, taken: taken)
    }
    there.withLock { $0.parts?[part.index] = part.hash }
    return part
  }

  /// Compares the part with what was sent before, and records the part before it is sent.
  private func mustSend(
    _ part: PartSealer.Part, _ attempt: UploadAttempt, _ there: Parts, isRecorded: Bool
  ) async throws -> Bool {
    if let before = attempt.parts[part.index] {
      guard before == part.hash else { throw PartDiffers() }
    } else if isRecorded {
      guard try await journal.note(part, of: attempt) else { throw PartDiffers() }
    }
    guard let known = there.withLock({ $0.parts?[part.index] }) else { return true }
    guard known == part.hash else { throw PartDiffers() }
    return false
  }

  private func complete(_ fields: NodeRecord.Content?, _ sealer: ContentSealer) async throws -> SuppliedContent {
    let status = try await TransferRetry.run { try await api.completeBlob(sealer.blobID) }
    guard let fields, status.contentRoot == fields.contentRoot else {
      throw ZDCSecurityError(.contentHashMismatch, node: journal.node)
    }
    return .uploaded(fields, sealer.secrets)
  }

  // MARK: By the system

  /// Seals the parts that the server lacks into files and hands them over, as many as have room.
  private func stage(
    _ source: Source, _ attempt: UploadAttempt, _ there: Parts, _ id: TransferHandOver.UploadID
  ) async throws -> Staged {
    do {
      try await askOnce(source, attempt, there)
      let staged = try await slots.run(cipherLength: source.layout.cipherLength) {
        there.withLock { $0.mayHandOver() } ? try await stageParts(source, attempt, there) : .full
      }
      handOver.staged(id)
      return staged
    } catch let error as ZDCError where error.code == .diskFull || error.code == .fileFailure {
      // The parts that have a file are sent; this process sends the others when the app returns.
      handOver.staged(id, error)
      return .full
    }
  }

  private func stageParts(
    _ source: Source, _ attempt: UploadAttempt, _ there: Parts
  ) async throws -> Staged {
    var parts = try PartSealer(source.data, try source.sealer(attempt))
    var staged = Staged.nothingMissing
    while handOver.handsUploadsOver, let part = try parts.next() {
      try Task.checkCancellation()
      // Recorded even for content of one part: a later process must seal the same bytes, or the system's work is lost.
      guard try await mustSend(part, attempt, there, isRecorded: true) else { continue }
      guard try await handOverPart(part, attempt) else { return staged == .handedOver ? .handedOver : .full }
      staged = .handedOver
    }
    return staged
  }

  private func handOverPart(_ part: PartSealer.Part, _ attempt: UploadAttempt) async throws -> Bool {
    let blob = attempt.blobID
    return try await handOver.upload(.part(blob, part.index), part.bytes) { [api] file in
      try await api.systemPart(blob, index: part.index, hash: part.hash, file: file)
    }
  }
}
