internal import Foundation
internal import ZDCClientStore
internal import ZDCProtocol
internal import ZDCSupport
package import ZDCTreesystem

// Downloads that outlive their process (reference 4.4).

extension ZDCDownloadManager {
  /// What was replaced or deleted meanwhile, or is never answered, is not tried for ever.
  private static let savedForMs: UInt64 = 7 * 24 * 3_600 * 1_000

  // MARK: In the background

  package func start<Occasion: Sendable>(_ occasions: AsyncStream<Occasion>) {
    running.withLock { $0 = Task { await self.resumeDownloads(at: occasions) } }
  }

  /// What is under way ends; what is saved goes on at the next start. The delegate is not called any more when this
  /// returns, and what completion blocks have got is not saved any more.
  package func stop() async {
    background.stop()
    let task = running.withLock { task in
      defer { task = nil }
      return task
    }
    task?.cancel()
    await transfers.cancelAll()
    await metaTransfers.cancelAll()
    #if canImport(Darwin) && !os(macOS)
      system.stop()
    #endif
    await task?.value
    await background.allHaveLeft()
    background.release()
  }

  /// Goes on with the downloads of processes that have ended, now and at every occasion, until the task is cancelled.
  package func resumeDownloads<Occasion: Sendable>(at occasions: AsyncStream<Occasion>) async {
    await withDiscardingTaskGroup { group in
      await beginResuming { saved in group.addTask { await self.resume(saved) } }
      for await _ in occasions {
        await beginResuming { saved in group.addTask { await self.resume(saved) } }
        // Others write all the time, and few processes end.
        do { try await Task.sleep(for: .seconds(10)) } catch { break }
      }
      group.cancelAll()
    }
  }

  /// The same once, for those that step by hand. Returns when all have come or failed.
  package func resumeDownloads() async {
    await withDiscardingTaskGroup { group in
      await beginResuming { saved in group.addTask { await self.resume(saved) } }
    }
  }

  /// How many requests wait for the node's data.
  package func waiterCount(_ node: ZDCNode) async throws -> Int {
    let key = try await database.asyncRead { try $0.contentTarget(nodeUUID: node.uuid).key }
    return await transfers.waiterCount(key)
  }

  private func beginResuming(_ start: (DownloadStore.Saved) -> Void) async {
    do {
      let now = database.context.clock()
      for saved in try await background.orphans() {
        guard background.beginResuming(saved.key) else { continue }
        if saved.createdMs + Self.savedForMs > now {
          start(saved)
        } else {
          await giveUp(saved.key, ZDCError(.downloadFailed, detail: "\(saved.key.nodeID), after a week"))
        }
      }
    } catch { database.context.logFailure(error) }
  }

  private func resume(_ saved: DownloadStore.Saved) async {
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

  /// The completion went with the process that asked: the status stream gets the error. The app knows of a deletion.
  private func giveUp(_ key: DownloadKey, _ error: any Error) async {
    if (error as? ZDCError)?.code != .nodeNotFound { database.context.changes.report(error) }
    await drop(key)
  }

  private func drop(_ key: DownloadKey) async {
    _ = background.endResuming(key)
    await background.settle(key)
  }

  /// Whether another try cannot succeed either. A download that may succeed later stays saved.
  static func isPermanent(_ error: any Error) -> Bool {
    switch error {
    case let error as ZDCError: [.nodeNotFound, .nodeNotUploaded, .noContent].contains(error.code)
    // The server's fault, or a version that is gone: the next pull may show another.
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

  /// Tells the app, unless somebody who asked in this process got it. The row goes after the call: a process that ends
  /// within it is told again.
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
