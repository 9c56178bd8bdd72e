import Testing
import ZDCProtocol
import ZDCServer

/// K-6: access lists come as edits of the one before, if the client asks for that (PROTOCOL 4.4).
@Suite struct ListEditTests {
  /// - 20 members come one by one, and one leaves; the log is read whole, in pages, and from behind a list, with edits
  /// => each answer gives the same lists as without edits, in fewer bytes
  @Test func aLogGivesTheSameListsWithEdits() async throws {
    try await TestServer.run { (server: TestServer) async throws in
      let (account, token) = try await server.newAccount()
      var home = account.home
      var members: [UserID] = []
      for _ in 0..<20 {
        let (friend, _) = try await server.newAccount()
        members.append(friend.userID)
        home.acl = try await server.share(&home, with: home.member(friend.userID), token: token)
        try await server.put([home.record(.random())], in: &home, token: token)
      }
      let base = home.acl
      try await server.remove(members[3], from: &home, token: token)
      let path = Routes.path(Routes.zoneCommits, home.zone.tree.text, home.zone.root.text)
      func lists(_ query: String, after list: ZoneACL? = nil) async throws -> (hashes: Set<ACLHash>, bytes: Int) {
        let page = try await server.send(.GET, "\(path)?\(query)", token: token).expect(200)
        return (Set(try PageContents(page.bytes, after: list).lists.keys), page.bytes.count)
      }
      let plain = try await lists("records=0")
      #expect(plain.hashes.count == 22)
      for query in ["edits=1", "whole=1&edits=1"] {
        let edited = try await lists(query)
        #expect(edited.hashes == plain.hashes && edited.bytes < plain.bytes)
      }
      // The list in force before the page is the one of commit 39.
      let page = try await server.send(.GET, "\(path)?after=40&edits=1", token: token)
      #expect(try page.outline() == "aclEdit, grant, commit 41")
      #expect(try await lists("after=40&edits=1", after: base).hashes == [home.acl.hash])
      let positions = ZonePosition.bytes(of: [ZonePosition(zone: home.zone, after: 40)])
      let pages = try await server.send(.POST, Routes.zonePages + "?edits=1", token: token, body: positions)
      let body = try #require(try ZonePage.all(pages.bytes).first?.log?.body)
      #expect(Array(body) == page.bytes)
    }
  }
}
