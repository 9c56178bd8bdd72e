import Foundation
import Testing
import ZDCCrypto
import ZDCProtocol
import ZDCTreesystem

@testable import ZDCTransfers
@testable import ZeroDarkCloud

/// Content from a hostile writer who knows all keys, on a colluding server. Root and record are consistent, the content
/// is not (SECURITY B2, B3, B6, B12).
@Suite struct HostileContentTests {
  /// The size of a chunk with its tag. Chunks follow the salt and the commitment.
  private static let chunk = ContentGeometry.sealedChunkBytes

  private static func forged(
    _ forge: @escaping @Sendable (inout [UInt8]) -> Void = { _ in },
    claim: @escaping @Sendable (inout ContentSizes) -> Void = { _ in }
  ) -> Publisher.Item {
    Publisher.Item(
      data: pattern(400_000), metadata: pattern(700), thumbnail: pattern(9_000, seed: 3), forge: forge, claim: claim)
  }

  struct Case: Sendable, CustomTestStringConvertible {
    let name: String
    let code: ZDCSecurityError.Code
    /// Whether reading only the first leaves detects it.
    let isInHead: Bool
    let item: Publisher.Item

    var testDescription: String { name }
  }

  static let cases: [Case] = [
    Case(
      name: "altered chunk", code: .chunkAuthFailed, isInHead: false,
      item: forged { $0[ContentGeometry.prefixBytes + 7 * chunk + 5] ^= 1 }),
    Case(
      name: "altered tag of the last chunk", code: .chunkAuthFailed, isInHead: false,
      item: forged { $0[$0.count - 1] ^= 1 }),
    Case(
      name: "two chunks swapped", code: .chunkAuthFailed, isInHead: false,
      item: forged { bytes in
        let first = ContentGeometry.prefixBytes + 5 * chunk
        let second = first + 3 * chunk
        for offset in 0..<chunk { bytes.swapAt(first + offset, second + offset) }
      }),
    Case(
      name: "altered first chunk", code: .chunkAuthFailed, isInHead: true,
      item: forged { $0[ContentGeometry.prefixBytes] ^= 1 }),
    Case(name: "another salt", code: .commitmentMismatch, isInHead: true, item: forged { $0[0] ^= 1 }),
    Case(name: "another commitment", code: .commitmentMismatch, isInHead: true, item: forged { $0[40] ^= 1 }),
    Case(
      name: "cut at a chunk", code: .contentHeaderInvalid, isInHead: true,
      item: forged({ $0.removeLast(20_000) }, claim: { $0.data -= 20_000 })),
    Case(
      name: "other sizes than the header's", code: .contentHeaderInvalid, isInHead: true,
      item: forged(claim: { sizes in
        sizes.metadata -= 1
        sizes.data += 1
      })),
  ]

  @Test(arguments: cases)
  func forgedContent_isNeverHandedOut(_ test: Case) async throws {
    try await NetworkWorld.run { world in
      let device = try world.device()
      let node = try await Publisher(device).publish([test.item])[0]
      let target = world.folder.appendingPathComponent("clear")
      let direct = await #expect(throws: ZDCSecurityError.self) {
        try await device.downloads.downloadNodeData(node, toFile: target)
      }
      #expect(direct?.code == test.code)
      #expect(direct?.node == node.nodeID)
      #expect(!FileManager.default.fileExists(atPath: target.path))
      // The ciphertext matches the record, but cannot be decrypted.
      let file = try await device.downloads.downloadNodeData(node).cryptoFile
      let opened = #expect(throws: ZDCSecurityError.self) { try ZDCFileConversion.decryptCryptoFile(intoMemory: file) }
      #expect(opened?.code == test.code)
      guard test.isInHead else { return }
      let meta = await #expect(throws: ZDCSecurityError.self) {
        try await device.downloads.downloadNodeMeta(node, components: .all)
      }
      #expect(meta?.code == test.code)
    }
  }

  /// Lengths in a record that no real content has.
  @Test(
    arguments: [
      (Limits.contentCipherBytes + 1, ZDCSecurityError.Code.limitExceeded), (1 << 63, .limitExceeded),
      (.max, .limitExceeded), (100, .contentHeaderInvalid), (0, .contentHeaderInvalid),
    ] as [(UInt64, ZDCSecurityError.Code)])
  func senselessLengths_areRefused_beforeAnythingIsAllocated(length: UInt64, code: ZDCSecurityError.Code) async throws {
    try await NetworkWorld.run { world in
      let device = try world.device()
      var item = Self.forged()
      item.claimedLength = length
      let node = try await Publisher(device).publish([item])[0]
      let whole = await #expect(throws: ZDCSecurityError.self) { try await device.downloads.downloadNodeData(node) }
      #expect(whole?.code == code)
      let meta = await #expect(throws: ZDCSecurityError.self) {
        try await device.downloads.downloadNodeMeta(node, components: .all)
      }
      #expect(meta?.code == code)
    }
  }

  /// The record claims 10 GiB; the server has less.
  @Test func aLengthThatTheServerCannotServe_isATruncation() async throws {
    try await NetworkWorld.run { world in
      let device = try world.device()
      var item = Self.forged()
      item.claimedLength = 10 << 30
      let node = try await Publisher(device).publish([item])[0]
      let whole = await #expect(throws: ZDCSecurityError.self) { try await device.downloads.downloadNodeData(node) }
      #expect(whole?.code == .contentTruncated)
      let meta = await #expect(throws: ZDCSecurityError.self) {
        try await device.downloads.downloadNodeMeta(node, components: .all)
      }
      #expect(meta?.code == .contentHashMismatch)
    }
  }
}
