import Foundation
import Testing
import ZDCFuzzTargets

/// The same targets that `make fuzz` explores, run over the corpus and a fixed number of random inputs.
@Suite struct FuzzTests {
  private static let corpus = Corpus()

  @Test(arguments: FuzzTarget.all.map(\.name)) func whateverIsRead_isRefusedOrKeepsItsPromises(name: String) throws {
    let target = try #require(FuzzTarget.named(name))
    var generator = SplitMix(seed: 0x5eed_2026)
    let seeds = Self.corpus.inputs(for: name) + [[], generator.bytes(64)]
    for seed in seeds {
      try target.run(seed)
      for _ in 0..<max(1, 600 / seeds.count) { try target.run(mutated(seed, target.longest, &generator)) }
    }
  }

  @Test func namesOfTargetsAreUnique() {
    #expect(Set(FuzzTarget.all.map(\.name)).count == FuzzTarget.all.count)
  }

  @Test func everyFolderOfTheCorpusBelongsToATarget() {
    #expect(Self.corpus.names.isSubset(of: Set(FuzzTarget.all.map(\.name))))
    #expect(!Self.corpus.names.isEmpty)
  }

  private func mutated(_ seed: [UInt8], _ longest: Int, _ generator: inout SplitMix) -> [UInt8] {
    var bytes = seed
    for _ in 0...Int(generator.next() % 4) {
      let place = bytes.isEmpty ? 0 : Int(generator.next() % UInt64(bytes.count))
      let count = min(bytes.count - place, 1 + Int(generator.next() % 24))
      switch generator.next() % 5 {
      case 0: if !bytes.isEmpty { bytes[place] ^= 1 << UInt8(generator.next() % 8) }
      case 1: bytes.removeSubrange(place..<place + count)
      case 2: bytes.insert(contentsOf: generator.bytes(1 + count), at: place)
      case 3: bytes.insert(contentsOf: bytes[place..<place + count], at: place)
      default: bytes.replaceSubrange(place..<place + count, with: repeatElement(0xFF, count: count))
      }
    }
    return Array(bytes.prefix(longest))
  }
}

/// Inputs by target: small ones that reach deep into the code, and every one that once broke a promise.
private struct Corpus {
  private let root = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "Corpus")

  var names: Set<String> { Set(list(root).map(\.lastPathComponent)) }

  func inputs(for name: String) -> [[UInt8]] {
    list(root.appending(path: name)).sorted { $0.path < $1.path }
      .compactMap { try? Data(contentsOf: $0) }.map { [UInt8]($0) }
  }

  private func list(_ folder: URL) -> [URL] {
    (try? FileManager.default.contentsOfDirectory(at: folder, includingPropertiesForKeys: nil)) ?? []
  }
}

private struct SplitMix: RandomNumberGenerator {
  private var state: UInt64

  init(seed: UInt64) { state = seed }

  mutating func next() -> UInt64 {
    state &+= 0x9E37_79B9_7F4A_7C15
    var z = state
    z = (z ^ (z >> 30)) &* 0xBF58_476D_1CE4_E5B9
    z = (z ^ (z >> 27)) &* 0x94D0_49BB_1331_11EB
    return z ^ (z >> 31)
  }

  mutating func bytes(_ count: Int) -> [UInt8] { (0..<count).map { _ in UInt8(truncatingIfNeeded: next()) } }
}
