import Foundation
import ZDCCrypto
import ZDCProtocol

// A stream of content on one core, with its Merkle root.

extension Bench {
  private static let streamBytes = 256 << 20
  private static let sliceBytes = 1 << 20

  func contentStream() throws -> [Figure] {
    let slice = [UInt8](repeating: 0x5a, count: Self.sliceBytes)
    var sealing: [Double] = []
    var opening: [Double] = []
    for _ in 1...runs {
      var ciphertext: [UInt8] = []
      ciphertext.reserveCapacity(Self.streamBytes + Self.streamBytes / 500)
      // The measured run discards its leaves: storing them is not part of sealing.
      let (sealTime, _) = try secondsAtOnce { try seal(slice) { _ in } }
      let sealed = try seal(slice) { ciphertext += $0 }
      let (openTime, bytes) = try secondsAtOnce { try open(ciphertext, sealed) }
      guard bytes == Self.streamBytes else { throw BenchError("opened something else") }
      sealing.append(Double(Self.streamBytes) / sealTime / 1e9)
      opening.append(Double(Self.streamBytes) / openTime / 1e9)
    }
    let yardstick = try cipherYardstick()
    return [Figure("seal", sealing, beside: yardstick), Figure("open", opening, beside: yardstick)]
  }

  private struct Sealed {
    var reference: ContentReference
    var leaves: ContentLeaves
  }

  private func seal(_ slice: [UInt8], _ take: ([UInt8]) -> Void) throws -> Sealed {
    let sealer = try ContentSealer(dataSize: UInt64(Self.streamBytes))
    var hashes: [MerkleHash] = []
    for _ in 0..<Self.streamBytes / Self.sliceBytes {
      try sealer.push(slice) {
        take($0.bytes)
        hashes.append($0.hash)
      }
    }
    let content = try sealer.finish(dataVersion: 1) {
      take($0.bytes)
      hashes.append($0.hash)
    }
    let reference = try ContentReference(content: content, secrets: sealer.secrets)
    return Sealed(reference: reference, leaves: try ContentLeaves(hashes, for: reference))
  }

  private func open(_ ciphertext: [UInt8], _ sealed: Sealed) throws -> Int {
    let opener = ContentOpener(sealed.reference, leaves: sealed.leaves)
    var count = 0
    var rest = ciphertext[...]
    while !rest.isEmpty {
      try opener.push(rest.prefix(Self.sliceBytes)) { section, bytes in
        if section == .data { count += bytes.count }
      }
      rest = rest.dropFirst(Self.sliceBytes)
    }
    try opener.finish()
    return count
  }
}
