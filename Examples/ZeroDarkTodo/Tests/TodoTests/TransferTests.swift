import Foundation
import Testing
import ZeroDarkCloud
import ZeroDarkCloudTesting

@testable import TodoKit

/// Photos, badges, and a network that is not always there.
@Suite(.timeLimit(.minutes(5))) struct TransferTests {
  @Test func aPhotoIsAttached_replacedAndRemoved() async throws {
    try await withDevices { _, laptop, phone in
      let milk = try await laptop.item("milk").id
      let large = Data((0..<300_000).map { UInt8(truncatingIfNeeded: $0 &* 31) })
      try await laptop.account.attachPhoto(large, thumbnail: Data("small".utf8), to: milk)
      let first = try #require(try await laptop.item("milk").photo)
      try await laptop.account.attachPhoto(large, thumbnail: Data("small".utf8), to: milk)
      #expect(try await laptop.item("milk").photo != first, "the version differs before an upload too")
      try await settle(laptop, phone)
      let copy = try await phone.item("milk").id
      #expect(try await phone.account.photos.thumbnail(of: copy) == Data("small".utf8))
      #expect(!phone.account.session.diskManager.hasNodeData(copy))
      #expect(try await phone.account.photos.data(of: copy) == large)
      try await laptop.account.attachPhoto(Data("new".utf8), thumbnail: Data("tiny".utf8), to: milk)
      try await settle(laptop, phone)
      #expect(try await phone.account.photos.thumbnail(of: copy) == Data("tiny".utf8))
      #expect(try await phone.account.photos.data(of: copy) == Data("new".utf8))
      try await phone.account.removePhoto(from: copy)
      try await settle(laptop, phone)
      #expect(try await laptop.item("milk").photo == nil)
      #expect(try await laptop.account.photos.data(of: milk) == nil)
    }
  }

  @Test func changesWithoutANetwork_waitAndSayWhy() async throws {
    try await withDevices { server, laptop, phone in
      try await server.stop()
      try await laptop.edit("milk") { $0.isDone = true }
      #expect(try await laptop.item("milk").badges == [.pending])
      #expect(try await laptop.lists().first?.badges == [.pending])
      await #expect(throws: (any Error).self) { try await laptop.sync() }
      let reasons = try await laptop.account.explain(laptop.item("milk").id)
      #expect(reasons.map(\.kind) == ["putData"])
      #expect(reasons.allSatisfy { !$0.unblockedBy.isEmpty })
      try await server.restart()
      try await settle(laptop, phone)
      #expect(try await laptop.item("milk").badges == [])
      #expect(try await phone.lines().first == "x milk [normal]")
    }
  }

  @Test func theScreenFollowsTheOtherDevice() async throws {
    try await withDevices { _, laptop, phone in
      let listID = try await phone.list("Groceries")
      var screens = phone.account.screens(list: listID).makeAsyncIterator()
      #expect(try await screens.next()?.tasks.count == 2)
      try await laptop.account.addTask("tea", to: laptop.list("Groceries"))
      try await settle(laptop, phone)
      while let screen = try await screens.next(), screen.tasks.last?.task?.title != "tea" {}
    }
  }

  @Test func markedDownloads_startAgain_whenTheServerIsBack() async throws {
    try await withDevices { server, laptop, _ in
      let words = try await laptop.account.session.localUserManager.accessWords(for: laptop.account.user)
      let (folder, address) = (try TemporaryFolder(), server.url.absoluteString)
      let before = try ZDCManager(server: address, folder: folder.url, syncsAutomatically: false)
      let user = try await before.logIn(words: words).user
      try await before.session.syncManager.syncUntilIdle(localUserID: user)  // the tree, without its content
      try await before.close()
      try await server.stop()
      let manager = try ZDCManager(server: address, folder: folder.url)
      let desk = Device(manager: manager, account: try manager.account(user))
      let listID = try await desk.list("Groceries")
      #expect(try await desk.lines() == ["(not downloaded)", "(not downloaded)"])
      try await server.restart()
      var screens = desk.account.screens(list: listID).makeAsyncIterator()
      while let screen = try await screens.next(), screen.tasks.contains(where: { $0.badges != [] }) {}
      #expect(try await desk.lines() == ["- milk [normal]", "- bread [normal]"])
      try await manager.close()
    }
  }

  @Test func theServerStoresNeitherTitlesNorPhotos() async throws {
    try await withDevices { server, laptop, phone in
      try await laptop.edit("milk") { $0.title = "canary-title-of-a-task" }
      try await laptop.account.createList("canary-title-of-a-list")
      let photo = Data("canary-bytes-of-a-photo".utf8)
      try await laptop.account.attachPhoto(photo, thumbnail: photo, to: laptop.item("canary-title-of-a-task").id)
      try await settle(laptop, phone)
      let scanner = CanaryScanner(["canary-title-of-a-task", "canary-title-of-a-list", "canary-bytes-of-a-photo"])
      #expect(try scanner.scan(folder: server.folder).isEmpty)
      let sealed = try await laptop.account.sealed(laptop.item("canary-title-of-a-task").id)
      #expect(sealed.bytes > 256 && sealed.beginning.count == 256)
      #expect(sealed.beginning.range(of: Data("canary".utf8)) == nil)
    }
  }

  @Test func betweenTwoRanksThereIsAlwaysAnotherOne() {
    var (generator, ranks) = (SystemRandomNumberGenerator(), [Rank.between(nil, nil)])
    for _ in 0..<2_000 {
      let index = Int.random(in: 0...ranks.count, using: &generator)
      let lower = index > 0 ? ranks[index - 1] : nil
      ranks.insert(Rank.between(lower, index < ranks.count ? ranks[index] : nil), at: index)
    }
    #expect(ranks == ranks.sorted() && Set(ranks).count == ranks.count)
    #expect(ranks.allSatisfy { $0.count < 64 && !$0.hasSuffix("0") }, "\(ranks.max { $0.count < $1.count } ?? "")")
    let appended = (0..<1_000).reduce(into: [String]()) { ranks, _ in ranks.append(Rank.between(ranks.last, nil)) }
    #expect(appended == appended.sorted() && appended.last?.count ?? 0 <= 17)
    #expect(Rank.between("5", "5") > "5")
  }
}
