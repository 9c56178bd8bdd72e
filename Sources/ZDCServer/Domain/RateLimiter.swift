internal import Synchronization

/// Token buckets by key, refilled evenly: for calls by client address, for work by user.
///
/// A charge may take more than a bucket holds. Its key then waits until the debt is refilled.
///
/// Each process of a server has its own buckets. Where several processes share the calls, each call takes as many tokens as
/// there are processes: together they allow what one process alone does.
final class RateLimiter<Key: Hashable & Sendable>: Sendable {
  private struct Bucket {
    var tokens: Double
    var atMs: UInt64
  }

  private let perMinute: Double
  private let burst: Double
  private let keys: Int
  private let processes: @Sendable () -> Int
  private let buckets = Mutex<[Key: Bucket]>([:])

  /// - Parameters:
  ///   - burst: the capacity of a bucket; nil means the tokens of one minute.
  ///   - keys: the maximum number of buckets.
  ///   - processes: returns the number of processes that share the calls, this one included.
  init(
    perMinute: Int, burst: Int? = nil, keys: Int = 16_384, processes: @escaping @Sendable () -> Int = { 1 }
  ) {
    self.perMinute = Double(perMinute)
    self.burst = Double(burst ?? perMinute)
    self.keys = keys
    self.processes = processes
  }

  /// The tokens of one call. A full bucket is enough for one, however many processes there are.
  private var price: Double { min(Double(max(processes(), 1)), max(burst, 1)) }

  /// Takes a token; returns nil on success, else the milliseconds until one is available.
  func take(_ key: Key, now: UInt64) -> UInt64? {
    let price = price
    return change(key, now) { bucket in
      guard bucket.tokens >= price else { return waitMs(bucket, for: price) }
      bucket.tokens -= price
      return nil
    }
  }

  /// Returns nil if the key has no debt, else the milliseconds until it is paid.
  func wait(_ key: Key, now: UInt64) -> UInt64? {
    change(key, now) { bucket in bucket.tokens >= 0 ? nil : waitMs(bucket, for: 0) }
  }

  /// Takes `count` tokens, going into debt if necessary.
  func charge(_ key: Key, _ count: Int, now: UInt64) {
    guard count > 0 else { return }
    let price = price
    change(key, now) { $0.tokens -= Double(count) * price }
  }

  var count: Int { buckets.withLock { $0.count } }

  private func waitMs(_ bucket: Bucket, for tokens: Double) -> UInt64 {
    UInt64(((tokens - bucket.tokens) * 60_000 / perMinute).rounded(.up))
  }

  @discardableResult
  private func change<T>(_ key: Key, _ now: UInt64, _ body: (inout Bucket) -> T) -> T {
    buckets.withLock { buckets in
      if buckets[key] == nil, buckets.count >= keys { makeRoom(in: &buckets, now) }
      var bucket = refilled(buckets[key] ?? Bucket(tokens: burst, atMs: now), now)
      defer { buckets[key] = bucket }
      return body(&bucket)
    }
  }

  private func refilled(_ bucket: Bucket, _ now: UInt64) -> Bucket {
    let elapsed = Double(now > bucket.atMs ? now - bucket.atMs : 0)
    return Bucket(tokens: min(burst, bucket.tokens + elapsed * perMinute / 60_000), atMs: max(now, bucket.atMs))
  }

  /// Forgets all keys with a full bucket. If that is not enough, also forgets the least recently used eighth.
  private func makeRoom(in buckets: inout [Key: Bucket], _ now: UInt64) {
    buckets = buckets.filter { refilled($0.value, now).tokens < burst }
    guard buckets.count >= keys else { return }
    for old in buckets.sorted(by: { $0.value.atMs < $1.value.atMs }).prefix(keys / 8 + 1) { buckets[old.key] = nil }
  }
}
