internal import Synchronization
internal import ZDCProtocol

/// Makes the names of new files durable before the server acknowledges a part of them. If the folder's entry were lost,
/// an acknowledged part would be lost too.
///
/// A part that finds an existing file cannot know whether its entry is durable. So each part syncs the folder until one
/// of them has succeeded.
final class DurableNames: Sendable {
  private let synchronize: @Sendable () throws -> Void
  private let durable = Mutex<Set<BlobID>>([])

  init(synchronize: @escaping @Sendable () throws -> Void) {
    self.synchronize = synchronize
  }

  func makeDurable(_ blob: BlobID) throws {
    guard !durable.withLock({ $0.contains(blob) }) else { return }
    try synchronize()
    durable.withLock { _ = $0.insert(blob) }
  }

  /// Forgets a blob whose upload has ended.
  func forget(_ blob: BlobID) { durable.withLock { _ = $0.remove(blob) } }
}
