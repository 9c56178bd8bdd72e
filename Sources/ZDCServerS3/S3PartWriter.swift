internal import NIOCore
internal import Synchronization
internal import ZDCProtocol
internal import ZDCServer

/// Holds a part until it is whole, because the store can be asked again only for bytes that are still there.
final class S3PartWriter: BlobPartWriter {
  private struct State {
    var bytes = ByteBuffer()
    var hasher: PartHasher
  }

  private let state: Mutex<State>
  private let store: @Sendable (_ bytes: ByteBuffer, _ leafHashes: [UInt8]) async throws -> Void

  init(
    index: Int, cipherLength: UInt64,
    store: @escaping @Sendable (_ bytes: ByteBuffer, _ leafHashes: [UInt8]) async throws -> Void
  ) {
    state = Mutex(State(hasher: PartHasher(index: index, cipherLength: cipherLength)))
    self.store = store
  }

  func write(_ bytes: [UInt8]) async throws {
    state.withLock { state in
      state.bytes.writeBytes(bytes)
      state.hasher.update(bytes)
    }
  }

  func finish() async throws -> [UInt8] {
    let (bytes, hashes) = state.withLock { ($0.bytes, $0.hasher.leafHashes) }
    try await store(bytes, hashes)
    return MerkleTree.partHash(leafHashes: hashes)
  }

  func abandon() async { state.withLock { $0.bytes = ByteBuffer() } }
}
