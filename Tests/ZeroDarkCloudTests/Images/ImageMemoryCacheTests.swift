import Testing

@testable import ZDCTransfers
@testable import ZeroDarkCloud

@Suite struct ImageMemoryCacheTests {
  private typealias Cache = ImageMemoryCache<Int>

  private static func key(_ number: Int) -> Cache.Key {
    Cache.Key(owner: "\(number % 7)", identity: nil, processingID: number % 2 == 0 ? nil : "\(number)")
  }

  private static func set(_ number: Int, cost: Int, in cache: Cache) {
    let read = cache.beginRead(key(number).owner)
    cache.set(number, key(number), cost: cost, of: read)
    cache.endRead(read)
  }

  /// A reference model: a list in the order of use, searched from the start each time.
  private struct Model {
    var limit: Int
    var entries: [(key: Cache.Key, cost: Int)] = []
    var cost: Int { entries.reduce(0) { $0 + $1.cost } }

    mutating func use(_ key: Cache.Key) -> Bool {
      guard let index = entries.firstIndex(where: { $0.key == key }) else { return false }
      entries.append(entries.remove(at: index))
      return true
    }

    mutating func set(_ key: Cache.Key, _ cost: Int) {
      entries.removeAll { $0.key == key }
      guard cost <= limit else { return }
      entries.append((key, cost))
      trim()
    }

    mutating func trim() {
      while cost > limit { entries.removeFirst() }
    }
  }

  /// Images are added, read and dropped, and the limit changes, in any order.
  @Test(arguments: 0..<60 as Range<UInt64>) func theCacheEvictsTheLeastRecentlyUsed(seed: UInt64) {
    var random = SeededGenerator(seed: seed)
    let cache = Cache(costLimit: 2_000)
    var model = Model(limit: 2_000)
    for _ in 0..<400 {
      let number = Int.random(in: 0..<40, using: &random)
      switch Int.random(in: 0..<20, using: &random) {
      case 0:
        cache.flush(["\(number % 7)", "\(number % 5)"])
        model.entries.removeAll { ["\(number % 7)", "\(number % 5)"].contains($0.key.owner) }
      case 1:
        cache.flush(processingID: "\(number)")
        model.entries.removeAll { $0.key.processingID == "\(number)" }
      case 2:
        model.limit = .random(in: 0...3_000, using: &random)
        cache.costLimit = model.limit
        model.trim()
      case 3..<11: #expect((cache.image(Self.key(number)) != nil) == model.use(Self.key(number)))
      default:
        let cost = Int.random(in: 64...600, using: &random)
        Self.set(number, cost: cost, in: cache)
        model.set(Self.key(number), cost)
      }
      #expect(cache.cost == model.cost)
      #expect(cache.count == model.entries.count)
    }
    for (key, _) in model.entries { #expect(cache.image(key) != nil) }
    cache.costLimit = 0
    #expect(cache.count == 0 && cache.cost == 0)
  }

  /// There are more images than fit into memory, so each one evicts another. With a linear search this would take
  /// minutes.
  @Test func manyImages_eachPushesOneOut() {
    let cache = Cache(costLimit: 20_000 * 64)
    for number in 0..<60_000 {
      let read = cache.beginRead("\(number)")
      cache.set(number, Cache.Key(owner: "\(number)", identity: nil, processingID: nil), cost: 64, of: read)
      cache.endRead(read)
    }
    #expect(cache.count == 20_000)
    #expect(cache.image(Cache.Key(owner: "39999", identity: nil, processingID: nil)) == nil)
    #expect(cache.image(Cache.Key(owner: "40000", identity: nil, processingID: nil)) == .some(40_000))
  }
}
