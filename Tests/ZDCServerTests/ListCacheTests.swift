import Testing
import ZDCProtocol

@testable import ZDCServer

/// Access lists are decoded once for many commits.
@Suite struct ListCacheTests {
  @Test func aListIsDecodedOnce() throws {
    let (cache, account) = (ListCache(), try TestAccount())
    let list = account.home.acl
    for _ in 0..<3 { #expect(try cache.list(list.bytes, named: list.hash) == list) }
    #expect(cache.decoded == 1)
  }

  /// - A client states the hash of another list, or of none
  /// => it gets the list that is in force
  @Test func aWrongHashDoesNotChangeTheList() throws {
    let (cache, account) = (ListCache(), try TestAccount())
    let (list, other) = (account.home.acl, try account.home.list(adding: []))
    _ = try cache.list(other.bytes, named: other.hash)
    #expect(try cache.list(list.bytes, named: other.hash) == list)
    #expect(try cache.list(list.bytes, named: .zero) == list)
    #expect(throws: ZDCSecurityError.self) { try cache.list([], named: list.hash) }
  }

  @Test func theCacheIsBounded() throws {
    let (cache, account) = (ListCache(), try TestAccount())
    let members = (0..<1_000).map { _ in account.home.member(UserID(randomBytes(32))!).entry }
    var list = account.home.acl
    for _ in 0..<300 {
      list = try account.home.list(adding: list.fields.version == 1 ? members : [], after: list)
      _ = try cache.list(list.bytes, named: list.hash)
    }
    #expect(cache.decoded == 300 && cache.bytes <= 16 << 20)
  }
}
