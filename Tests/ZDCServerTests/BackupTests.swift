import Foundation
import Testing
import ZDCProtocol
import ZDCServer
import ZDCServerSQLite

/// `zdc-server backup` and `restore`; `scripts/backup.txt` of the command tests restores under devices that are ahead.
@Suite(.needsFolder) struct BackupTests {
  private static func withFolders(_ body: (_ backup: String, _ restored: String) async throws -> Void) async throws {
    let folders = (TestServer.newFolder(), TestServer.newFolder())
    defer {
      TestServer.remove(folders.0)
      TestServer.remove(folders.1)
    }
    try await body(folders.0, folders.1)
  }

  private static func backUp(_ folder: String, of data: String, _ more: [String] = []) async throws {
    let run = try await ServerProcess.run(["backup", folder, "--data", data] + more)
    #expect(run.status == 0, "\(run.output)")
  }

  /// - After the backup, a user closes their account, and one deletes a large file that is then collected
  /// => restored with the list of deletions, the account is closed, and the file's bytes are gone
  @Test func deletionsAreRepeated() async throws {
    try await Self.withFolders { (backup, restored) async throws in
      try await TestServer.run {
        $0.bounds.retentionMs = 0
      } _: { (server: TestServer) async throws in
        let (leaver, leaverToken) = try await server.newAccount()
        let (account, token) = try await server.newAccount()
        var zone = account.home
        let large = [BlobTests.Large(70_000), BlobTests.Large(80_000)]
        let records = large.map { zone.record(.random(), content: $0.field) }
        for (content, record) in zip(large, records) {
          try await server.upload(content, record.fields.node, zone, token: token)
        }
        try await server.put(records, in: &zone, token: token)
        try await Self.backUp(backup, of: server.folder)
        let link = AppendLinkRequest(link: WireBytes(try leaver.closing().bytes))
        _ = try await server.sendJSON(.POST, Routes.links, link, token: leaverToken).expect(201)
        try await server.delete(records[0].fields.node, in: &zone, token: token)
        server.clock.advance(ms: 1_000)
        try await server.server.collect()
        let list = server.folder + "/" + DeletionFile.defaultName
        let run = try await ServerProcess.run(["restore", backup, "--to-data", restored, "--deletions", list])
        #expect(run.status == 0, "\(run.output)")
        #expect(run.output.contains("; 1 accounts closed again\n"))
        let findings = try DataFolder.check(path: restored).findings.map(\.description)
        #expect(findings == ["damage blobFileMissing blob=\(large[0].blob.text): the file is missing"])
        try await TestServer.run(in: restored) { (server: TestServer) async throws in
          #expect(try await server.store.read { try $0.user(leaver.userID)?.isClosed } == true)
          _ = try await server.zones(token: token)
          #expect(try await server.send(.GET, Routes.zones, token: leaverToken).status == 401)
        }
      }
    }
  }

  /// - After the backup, a user replaces the keyring and closes their account
  /// => restored with the list of deletions, the account is closed, and a check finds no damage
  @Test func anAccountThatIsClosedAgain_isNoDamage() async throws {
    try await Self.withFolders { (backup, restored) async throws in
      try await TestServer.run { (server: TestServer) async throws in
        let (account, token) = try await server.newAccount()
        try await Self.backUp(backup, of: server.folder)
        let keyring = randomBytes(1_000)
        let rotation = try account.encryptionRotation(keyring: keyring)
        for request in [
          AppendLinkRequest(link: WireBytes(rotation.bytes), keyring: WireBytes(keyring)),
          AppendLinkRequest(link: WireBytes(try account.closing(after: rotation).bytes)),
        ] {
          _ = try await server.sendJSON(.POST, Routes.links, request, token: token).expect(201)
        }
        let list = server.folder + "/" + DeletionFile.defaultName
        let run = try await ServerProcess.run(["restore", backup, "--to-data", restored, "--deletions", list])
        let repeated = "; 1 accounts closed again; 1 changes of keys, words and handles repeated\n"
        #expect(run.status == 0 && run.output.contains(repeated), "\(run.output)")
        #expect(try DataFolder.check(path: restored).findings == [])
      }
    }
  }

  /// - Two servers have lists of their own, the first of which ends in a line that a crash has cut
  /// => a restore repeats both
  @Test func theListsOfSeveralServersAreRepeated() async throws {
    try await Self.withFolders { (backup, restored) async throws in
      try await TestServer.run { (server: TestServer) async throws in
        let leavers = [try await server.newAccount().account, try await server.newAccount().account]
        try await Self.backUp(backup, of: server.folder)
        let lists = leavers.indices.map { "\(server.folder)/list\($0)" }
        for (leaver, list) in zip(leavers, lists) {
          try DeletionFile(path: list).note([
            .account(leaver.userID, ms: 7, links: [leaver.genesis.bytes, try leaver.closing().bytes])
          ])
        }
        try TestServer.write(try TestServer.bytes(of: lists[0]) + Array("content y".utf8), to: lists[0])
        let run = try await ServerProcess.run(
          ["restore", backup, "--to-data", restored, "--deletions", lists[0], "--deletions", lists[1]])
        #expect(run.status == 0 && run.output.contains("; 2 accounts closed again\n"))
        #expect(try await Self.listed(in: restored).count == 2)
      }
    }
  }

  private static func listed(in folder: String) async throws -> [Deletion] {
    try await listed(at: "\(folder)/\(DeletionFile.defaultName)")
  }

  private static func listed(at path: String) async throws -> [Deletion] {
    var found: [Deletion] = []
    try await DeletionFile.forEach(in: path) { found.append($0) }
    return found
  }

  /// => a server that moves takes its list of deletions with it: an older backup may be restored later
  @Test func theListMovesWithTheServer() async throws {
    let deletion = Deletion.content(.random())
    try await Self.withFolders { (old, new) async throws in
      try await TestServer.run(in: old) { (server: TestServer) async throws in _ = try await server.newAccount() }
      try DeletionFile(path: "\(old)/\(DeletionFile.defaultName)").note([deletion])
      let run = try await ServerProcess.run(["migrate", "--from-data", old, "--to-data", new])
      #expect(run.status == 0, "\(run.output)")
      #expect(try await Self.listed(in: new) == [deletion])
    }
  }

  /// - The list of a server that moves is damaged; its operator repairs it, and repeats the command
  /// => the command has not ended with a server that lacks the list, and can be repeated
  @Test func aListThatCannotBeMoved_endsNoMigration() async throws {
    let deletion = Deletion.content(.random())
    try await Self.withFolders { (old, new) async throws in
      try await TestServer.run(in: old) { (server: TestServer) async throws in _ = try await server.newAccount() }
      let list = "\(old)/\(DeletionFile.defaultName)"
      try TestServer.write(Array("something\n".utf8), to: list)
      #expect(try await ServerProcess.run(["migrate", "--from-data", old, "--to-data", new]).status != 0)
      try FileManager.default.removeItem(atPath: list)
      try DeletionFile(path: list).note([deletion])
      let run = try await ServerProcess.run(["migrate", "--from-data", old, "--to-data", new])
      #expect(run.status == 0, "\(run.output)")
      #expect(try await Self.listed(in: new) == [deletion])
    }
  }

  /// - An update of a backup is killed when the new manifest has its name, and the new database has not
  /// => the backup is the new one, also after another run that fails
  @Test func anUpdateThatIsKilledAtItsEnd_isWhole() async throws {
    try await Self.withFolders { (backup, restored) async throws in
      try await TestServer.run { (server: TestServer) async throws in
        let database = "\(backup)/zdc.sqlite"
        try await Self.backUp(backup, of: server.folder)
        let old = try TestServer.bytes(of: database)
        let (account, _) = try await server.newAccount()
        try await Self.backUp(backup, of: server.folder)
        try FileManager.default.moveItem(atPath: database, toPath: database + ".new")
        try TestServer.write(old, to: database)
        // The next one ends early.
        let next = try await ServerProcess.run(["backup", backup, "--data", restored])
        #expect(next.status == 66)
        let run = try await ServerProcess.run(["restore", backup, "--to-data", restored])
        #expect(run.status == 0, "\(run.output)")
        try await TestServer.run(in: restored) { (server: TestServer) async throws in
          #expect(try await server.store.read { try $0.user(account.userID) } != nil)
        }
        #expect(try await ServerProcess.run(["verify", backup]).status == 0)
      }
    }
  }

  /// - An update of a backup is killed at its last step; the next one finds no server, as after the loss of its disk
  /// => the backup is still whole
  @Test func anUpdateThatFailsAfterAKilledOne_leavesTheBackup() async throws {
    try await Self.withFolders { (backup, gone) async throws in
      try await TestServer.run { (server: TestServer) async throws in
        let database = "\(backup)/zdc.sqlite"
        try await Self.backUp(backup, of: server.folder)
        let old = try TestServer.bytes(of: database)
        _ = try await server.newAccount()
        try await Self.backUp(backup, of: server.folder)
        try FileManager.default.moveItem(atPath: database, toPath: database + ".new")
        try TestServer.write(old, to: database)
        #expect(try await ServerProcess.run(["backup", backup, "--data", gone]).status != 0)
        #expect(try await ServerProcess.run(["verify", backup]).status == 0)
      }
    }
  }

  /// - A server that has deleted nothing is backed up and restored with its list of deletions
  /// => the list is there
  /// - A list is named that is not there, and one that the server cannot write
  /// => both commands refuse that
  @Test func theListOfDeletions_isThereFromTheStart() async throws {
    let data = TestServer.newFolder()
    defer { TestServer.remove(data) }
    try await Self.withFolders { (backup, restored) async throws in
      let server = try await ServerProcess.serve(folder: data)
      _ = await server.stop()
      try await Self.backUp(backup, of: data)
      let list = "\(data)/\(DeletionFile.defaultName)"
      let restore = ["restore", backup, "--to-data", restored, "--deletions"]
      let missing = try await ServerProcess.run(restore + [list + "-of-others"])
      #expect(missing.status == 66)
      let run = try await ServerProcess.run(restore + [list])
      #expect(run.status == 0, "\(run.output)")
      let unwritable = try await ServerProcess.run(["serve", "--data", data, "--deletions", "\(data)/none/list"])
      #expect(unwritable.status == 73)
    }
  }

  /// - A server over PostgreSQL is backed up while it runs, and changes afterwards
  /// => the backup is sound and has the state of before; it is restored into a folder
  @Test func aDatabaseIsBackedUpWhileItIsServed() async throws {
    let url = try TestPostgres.shared().newDatabase()
    let data = TestServer.newFolder()
    defer { TestServer.remove(data) }
    try await Self.withFolders { (backup, restored) async throws in
      let server = try await ServerProcess.serve(folder: data, ["--database", url])
      let (account, token) = try await server.newAccount()
      var zone = account.home
      let large = BlobTests.Large(300_000)
      let record = zone.record(.random(), content: large.field)
      try await server.upload(large, record.fields.node, zone, token: token)
      try await server.put([record], in: &zone, token: token)
      let before = try await server.page(zone.zone, token: token).expect(200).bytes
      let unfinished = BlobTests.Large(200_000)
      _ = try await server.ticket(unfinished, .random(), zone, token: token).expect(201)
      _ = try await server.part(0, of: unfinished, token: token).expect(204)
      try await Self.backUp(backup, of: data, ["--database", url])
      try await server.put([zone.record(.random())], in: &zone, token: token)
      #expect(await server.stop() == 0)
      let verify = try await ServerProcess.run(["verify", backup])
      #expect(verify.status == 0, "\(verify.output)")
      let run = try await ServerProcess.run(["restore", backup, "--to-data", restored])
      #expect(run.status == 0, "\(run.output)")
      #expect(try DataFolder.check(path: restored).findings == [])
      let again = try await ServerProcess.serve(folder: restored)
      #expect(try await again.page(zone.zone, token: token).expect(200).bytes == before)
      let content = try await again.content(large.blob, of: record.fields.node, in: zone, token: token)
      #expect(content.bytes == large.bytes)
      #expect(await again.stop() == 0)
    }
    try TestPostgres.shared().remove(url)
  }

  /// - A file is deleted and collected between two backups into one folder
  /// => the second backup does not have it, and is sound
  @Test func aBackupIsBroughtUpToDate() async throws {
    try await Self.withFolders { (backup, _) async throws in
      try await TestServer.run {
        $0.bounds.retentionMs = 0
      } _: { (server: TestServer) async throws in
        let (account, token) = try await server.newAccount()
        var zone = account.home
        let large = BlobTests.Large(70_000)
        let record = zone.record(.random(), content: large.field)
        try await server.upload(large, record.fields.node, zone, token: token)
        try await server.put([record], in: &zone, token: token)
        try await Self.backUp(backup, of: server.folder)
        let file = "\(backup)/blobs/\(large.blob.text).content"
        #expect(try TestServer.bytes(of: file) == large.bytes)
        try await server.delete(record.fields.node, in: &zone, token: token)
        server.clock.advance(ms: 1_000)
        try await server.server.collect()
        #expect(try TestServer.bytes(of: file) == large.bytes, "the backup keeps what the server removes")
        try await Self.backUp(backup, of: server.folder)
        #expect(!FileManager.default.fileExists(atPath: file))
        #expect(try DataFolder.check(path: backup).findings == [])
      }
    }
  }

  /// - A first backup was killed, and its folder has files that are not complete; another folder has a server's data
  /// => the backup is made in the first one; the second one is refused
  @Test func aKilledFirstBackupIsMadeAgain_butNotInADataFolder() async throws {
    try await Self.withFolders { (backup, other) async throws in
      try await TestServer.run { (server: TestServer) async throws in
        _ = try await server.newAccount()
        for folder in [backup, other] {
          try FileManager.default.createDirectory(atPath: folder + "/blobs", withIntermediateDirectories: true)
        }
        for name in ["zdc.sqlite.new", "zdc.sqlite.new-wal", "manifest.json.new"] {
          try TestServer.write(Array("part".utf8), to: "\(backup)/\(name)")
        }
        try await Self.backUp(backup, of: server.folder)
        #expect(try DataFolder.check(path: backup).findings == [])
        try TestServer.write(Array("data".utf8), to: other + "/zdc.sqlite")
        let refused = try await ServerProcess.run(["backup", other, "--data", server.folder])
        #expect(refused.status == 73, "\(refused.output)")
        #expect(try TestServer.bytes(of: other + "/zdc.sqlite") == Array("data".utf8))
      }
    }
  }

  @Test func aListOfDeletionsIsReadAsWritten_andRefusedIfItIsNone() async throws {
    let path = TestServer.newFolder()
    defer { TestServer.remove(path) }
    let file = DeletionFile(path: path)
    let user = try TestAccount()
    let login = WireBytes(SigningKey().publicBytes)
    let link = WireBytes(try user.rootRotation(to: SigningKey()).bytes)
    let requests = [
      AppendLinkRequest(link: link), AppendLinkRequest(link: link, keyring: WireBytes([])),
      AppendLinkRequest(link: link, keyring: WireBytes(user.keyring), lookupID: .random(), loginKey: login),
    ]
    let deletions: [Deletion] = [
      .content(.random()), .account(user.userID, ms: 7, links: [user.genesis.bytes, try user.closing().bytes]),
    ]
    let others: [Deletion] =
      requests.map { .link($0, of: user.userID, by: user.deviceID, ms: 8) } + [
        .device(user.deviceID, of: user.userID, ms: 9), .suspension(user.userID, ms: .max, isSuspended: true),
        .suspension(user.userID, ms: 0, isSuspended: false),
      ]
    try file.note(others)
    #expect(try await Self.listed(at: path) == others)
    try FileManager.default.removeItem(atPath: path)
    for deletion in deletions { try file.note([deletion]) }
    func read() async throws -> [Deletion] { try await Self.listed(at: path) }
    #expect(try await read() == deletions)
    let bytes = try TestServer.bytes(of: path)
    try TestServer.write(Array(bytes.dropLast(9)), to: path)
    #expect(try await read() == [deletions[0]], "a crash has cut the last line")
    try file.note([deletions[1]])
    #expect(try await read() == deletions, "the list continues after the line that was cut")
    let continued = try TestServer.bytes(of: path)
    for end in bytes.count - 9...continued.count {
      try TestServer.write(Array(continued.prefix(end)), to: path)
      try file.note([deletions[0]])
      let isWhole = end == continued.count
      #expect(try await read() == [deletions[0]] + (isWhole ? [deletions[1]] : []) + [deletions[0]], "cut at \(end)")
    }
    for _ in 0..<2 { try file.note([deletions[0]]) }
    #expect(try await read() == deletions + [deletions[0], deletions[0], deletions[0]])
    try TestServer.write(Array("something\n".utf8), to: path)
    await #expect(throws: StoreOpenError.self) { try await read() }
  }

  /// - A user sends a link that closes the account with a keyring that is not the link's, then deletes uploads that do not
  ///   exist, sends a part of one, and gives up an upload
  /// => the list is empty: nothing of that was a deletion of something that a backup may have
  @Test func onlyDeletionsAreListed() async throws {
    try await TestServer.run { (server: TestServer) async throws in
      let (account, token) = try await server.newAccount()
      let link = AppendLinkRequest(
        link: WireBytes(try account.closing().bytes), keyring: WireBytes(randomBytes(100)))
      let refused = try await server.sendJSON(.POST, Routes.links, link, token: token)
      #expect(refused.error?.security == .keyringMismatch)
      let large = BlobTests.Large(70_000)
      #expect(try await server.part(0, of: large, token: token).status == 404)
      #expect(try await server.send(.DELETE, Routes.path(Routes.blob, large.blob.text), token: token).status == 404)
      _ = try await server.ticket(large, .random(), account.home, token: token).expect(201)
      _ = try await server.part(0, of: large, token: token).expect(204)
      _ = try await server.send(.DELETE, Routes.path(Routes.blob, large.blob.text), token: token).expect(204)
      #expect(try await server.blobs.all() == [])
      let list = "\(server.folder)/\(DeletionFile.defaultName)"
      let listed = FileManager.default.fileExists(atPath: list) ? try TestServer.bytes(of: list) : []
      #expect(listed == [])
    }
  }

  /// - A user begins an upload, sends a part of another one, and never continues; both are collected
  /// => the list is empty: no backup has them, and any user could make it grow
  @Test func abandonedUploadsAreNotListed() async throws {
    try await TestServer.run { (server: TestServer) async throws in
      let (account, token) = try await server.newAccount()
      for hasPart in [false, true] {
        let large = BlobTests.Large(70_000)
        _ = try await server.ticket(large, .random(), account.home, token: token).expect(201)
        if hasPart { _ = try await server.part(0, of: large, token: token).expect(204) }
      }
      server.clock.advance(ms: 8 * 86_400_000)
      try await server.server.collect()
      #expect(try await server.blobs.all() == [])
      let list = "\(server.folder)/\(DeletionFile.defaultName)"
      let listed = FileManager.default.fileExists(atPath: list) ? try TestServer.bytes(of: list) : []
      #expect(listed == [])
    }
  }

  /// - A file cannot be removed, and each collection tries again
  /// => it is listed once
  @Test func aFileThatStaysIsListedOnce() async throws {
    try await TestServer.run { (server: TestServer) async throws in
      let blob = BlobID.random()
      let file = "\(server.folder)/blobs/\(blob.text).content"
      // A folder that has something is no file that can be removed.
      try FileManager.default.createDirectory(atPath: file + "/x", withIntermediateDirectories: true)
      for _ in 0..<3 { try await server.server.collect() }
      var found: [Deletion] = []
      try await DeletionFile.forEach(in: "\(server.folder)/\(DeletionFile.defaultName)") { found.append($0) }
      #expect(found == [.content(blob)])
    }
  }

  /// - The list names the chain of an account with a link that its owner did not sign
  /// => nothing is closed
  @Test func aForgedClosingIsRefused() async throws {
    try await TestServer.run { (server: TestServer) async throws in
      let (victim, _) = try await server.newAccount()
      let (other, _) = try await server.newAccount()
      let replay = DeletionReplay(in: server.store)
      let links = [victim.genesis.bytes, try other.closing().bytes]
      await #expect(throws: ZDCSecurityError.self) {
        try await replay.closeAccount(victim.userID, ms: 1, links: links)
      }
      #expect(try await replay.closeAccount(victim.userID, ms: 1, links: [victim.genesis.bytes]) == false)
      #expect(try await server.store.read { try $0.user(victim.userID)?.isClosed } == false)
    }
  }
}
