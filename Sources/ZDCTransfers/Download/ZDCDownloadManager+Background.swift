internal import Foundation
internal import ZDCClientStore
internal import ZDCProtocol
internal import ZDCSupport
package import ZDCTreesystem

// Downloads that outlive their process.

extension ZDCDownloadManager {
  /// How long a download stays saved. Content that was replaced or deleted, or never arrives, is not retried forever.
  private static let savedForMs: UInt64 = 7 * 24 * 3_600 * 1_000

  // MARK: In the background

  package func start<Occasion: Sendable>(_ occasions: AsyncStream<Occasion>) {
    running.withLock { $0 = Task { await self.resumeDownloads(at: occasions) } }
  }

  /// Ends running transfers; saved downloads resume at the next start. When this returns, the delegate is no longer
  /// called, and downloads whose results reached a completion block are no longer saved.
  package func stop() async {
    background.stop()
    let task = running.withLock { task in
      defer { task = nil }
      return task
    }
    task?.cancel()
    await transfers.cancelAll()
    await metaTransfers.cancelAll()
    await task?.value
    await background.allHaveLeft()
    background.release()
  }

  /// Resumes the downloads of ended processes, now and whenever `occasions` yields, until the task is cancelled.
  package func resumeDownloads<Occasion: Sendable>(at occasions: AsyncStream<Occasion>) async {
    await withDiscardingTaskGroup { group in
      await beginResuming { saved in group.addTask { await self.resume(saved) } }
      for await _ in occasions {
        await beginResuming { saved in group.addTask { await self.resume(saved) } }
        // Other processes write often but rarely end.
        do { try await Task.sleep(for: .seconds(10)) } catch { break }
      }
      group.cancelAll()
    }
  }

  /// Resumes the downloads of ended processes, and waits also for those that are resumed already. The app has received
  /// what is complete when this returns.
  package func deliverResumed() async {
    let changes = resumingChanges.stream(limit: 1)
    await resumeDownloads()
    if resuming.withLock({ $0 == 0 }) { return }
    for await _ in changes where resuming.withLock({ $0 == 0 }) { return }
  }

  /// Resumes the downloads of ended processes once, for callers that step manually. Returns when all downloads have
  /// finished or failed.
  package func resumeDownloads() async {
    await withDiscardingTaskGroup { group in
      await beginResuming { saved in group.addTask { await self.resume(saved) } }
    }
  }

  /// Returns the number of requests that wait for the node's data.
  package func waiterCount(_ node: ZDCNode) async throws -> Int {
    let key = try await database.asyncRead { try $0.contentTarget(nodeUUID: node.uuid).key }
    return await transfers.waiterCount(key)
  }

  private func beginResuming(_ start: (DownloadStore.Saved) -> Void) async {
    do {
      let now = database.context.clock()
      for saved in try await background.takeOver() {
        if saved.createdMs + Self.savedForMs > now {
          resuming.withLock { $0 += 1 }
          start(saved)
        } else {
          await giveUp(saved.key, ZDCError(.downloadFailed, detail: "\(saved.key.nodeID), after a week"))
        }
      }
    } catch { database.context.logFailure(error) }
  }

  private func resume(_ saved: DownloadStore.Saved) async {
    defer {
      resuming.withLock { $0 -= 1 }
      resumingChanges.send(())
    }
    await fetchAndDeliver(saved)
  }

  private func fetchAndDeliver(_ saved: DownloadStore.Saved) async {
    let (key, interest) = (saved.key, TransferInterest { _, _ in })
    do {
      switch key.part {
      case .data:
        let (_, file) = try await fetchData(key, saved.options, interest)
        await deliver(key, file)
      case .meta(let components):
        let (info, metadata, thumbnail) = try await fetchMeta(key, components, saved.options, interest)
        await deliver(key) { node, path, delegate in
          delegate.didBackgroundDownloadNodeMeta(
            node, at: path, withComponents: components, header: info, metadata: metadata, thumbnail: thumbnail)
        }
      }
    } catch {
      if Self.isPermanent(error) {
        await giveUp(key, error)
      } else if !background.postpone(key) {
        await drop(key)
      }
    }
  }

  /// Gives up a download. The error goes to the status stream, because the completion block ended with its process. A
  /// deletion is not reported: the app already knows of it.
  private func giveUp(_ key: DownloadKey, _ error: any Error) async {
    if (error as? ZDCError)?.code != .nodeNotFound { database.context.changes.report(error) }
    await drop(key)
  }

  private func drop(_ key: DownloadKey) async {
    _ = background.endResuming(key)
    await background.settle(key)
  }

  /// Whether another attempt cannot succeed either. A download that may succeed later stays saved.
  static func isPermanent(_ error: any Error) -> Bool {
    switch error {
    case let error as ZDCError: [.nodeNotFound, .nodeNotUploaded, .noContent].contains(error.code)
    // The server is at fault, or the version is gone but the next pull may bring another one.
    case let error as ZDCSecurityError: error.code != .objectMissing
    default: false
    }
  }

  private func deliver(_ key: DownloadKey, _ file: ZDCCryptoFile) async {
    let wasTaken = await deliver(key) { node, path, delegate in
      delegate.didBackgroundDownloadNodeData(node, at: path, withCryptoFile: file)
    }
    if !wasTaken { file.removeUnlessKept() }
  }

  /// Notifies the app, unless a request in this process received the result. Removes the row after the call: if the
  /// process ends during the call, the app is notified again.
  @discardableResult
  private func deliver(
    _ key: DownloadKey,
    _ call: @Sendable (_ node: ZDCNode, _ path: ZDCTreesystemPath, _ delegate: any BackgroundDownloadDelegate) -> Void
  ) async -> Bool {
    let isOurs = background.endResuming(key)
    var wasTold = false
    do {
      let place = try await database.asyncRead { transaction in
        try transaction.nodes.node(uuid: key.nodeID).map {
          (node: try transaction.zdcNode($0), path: try transaction.zdcPath($0))
        }
      }
      if isOurs, let place, let delegate {
        call(place.node, place.path, delegate)
        wasTold = true
      }
    } catch {
      database.context.logFailure(error)
      _ = background.postpone(key)
      return false
    }
    await background.settle(key, isOver: wasTold)
    return wasTold
  }
}
