import Foundation
import Testing
import ZeroDarkCloud
import ZeroDarkCloudTesting

@testable import TodoKit

/// Two devices change the same thing before they see each other's change.
@Suite(.timeLimit(.minutes(5))) struct ConflictTests {
  @Test func differentFieldsOfATask_areBothKept() async throws {
    try await withDevices { _, laptop, phone in
      try await laptop.edit("milk") { $0.title = "oat milk" }
      try await phone.edit("milk") { $0.priority = .high }
      try await settle(laptop, phone)
      #expect(try await phone.lines().first == "- oat milk [high]")
      #expect(try await phone.item("oat milk").badges == [])
    }
  }

  @Test func ofOneField_theCloudsValueWins_andTheOtherCanBeRestored() async throws {
    try await withDevices { _, laptop, phone in
      try await laptop.edit("milk") { $0.title = "oat milk" }
      try await phone.edit("milk") { $0.title = "soy milk" }
      try await laptop.sync()
      try await settle(phone, laptop)
      #expect(try await phone.lines().first == "- oat milk [normal]")
      #expect(try await phone.item("oat milk").badges == [.merged])
      #expect(try await laptop.item("oat milk").badges == [])
      let merge = try #require(try await phone.account.screen().activity.first { $0.kind == .loss })
      #expect(merge.canUndo)
      try await phone.account.undo(merge.id)
      try await settle(phone, laptop)
      #expect(try await laptop.lines().first == "- soy milk [normal]")
      #expect(try await phone.item("soy milk").badges == [])
      await #expect(throws: ZDCCloudError.self) { try await phone.account.undo(merge.id) }
    }
  }

  /// - a version of another device is downloaded twice; in between, this device has sent a newer one
  /// => the late version does not replace it
  @Test func aVersionThatArrivesLate_isSkipped() async throws {
    try await withDevices { _, laptop, phone in
      try await laptop.edit("milk") { $0.title = "oat milk" }
      try await laptop.sync()
      let (session, milk) = (phone.account.session, try await phone.item("milk").id)
      try await session.syncManager.syncUntilIdle(localUserID: phone.account.user)
      let node = try #require(try await phone.account.tree.read { _, cloud in cloud.node(id: milk) })
      var late: [ZDCContentDownload] = []
      for try await download in session.downloadManager.downloadContents(of: [node]) { late.append(download) }
      try await phone.sync()
      try await phone.edit("oat milk") { $0.title = "soy milk" }
      try await phone.sync()
      await phone.manager.receive(late)
      #expect(late.count == 1)
      #expect(try await phone.lines().first == "- soy milk [normal]")
      try await settle(phone, laptop)
      #expect(try await laptop.lines().first == "- soy milk [normal]")
    }
  }

  @Test func aMergeIsDismissed() async throws {
    try await withDevices { _, laptop, phone in
      try await laptop.edit("milk") { $0.title = "oat milk" }
      try await phone.edit("milk") { $0.title = "soy milk" }
      try await laptop.sync()
      try await phone.sync()
      let item = try await phone.item("oat milk")
      #expect(item.badges.contains(.merged))
      try await phone.account.dismissMerges(of: item.id)
      #expect(try await phone.item("oat milk").badges.contains(.merged) == false)
      try await settle(phone, laptop)
    }
  }

  @Test func ofTwoPhotos_theCloudsWins() async throws {
    try await withDevices { _, laptop, phone in
      let milk = try await laptop.item("milk").id
      try await laptop.account.attachPhoto(Data("old".utf8), thumbnail: nil, to: milk)
      try await settle(laptop, phone)
      try await laptop.account.attachPhoto(Data("laptop's".utf8), thumbnail: Data("L".utf8), to: milk)
      try await phone.account.attachPhoto(Data("phone's".utf8), thumbnail: Data("P".utf8), to: phone.item("milk").id)
      try await laptop.sync()
      try await settle(phone, laptop)
      for device in [laptop, phone] {
        #expect(try await device.account.photos.data(of: device.item("milk").id) == Data("laptop's".utf8))
        #expect(try await device.account.photos.thumbnail(of: device.item("milk").id) == Data("L".utf8))
      }
      let item = try await phone.item("milk")
      #expect(item.badges == [.merged])
      let loss = try #require(try await phone.account.screen().activity.first { $0.kind == .loss })
      #expect(loss.taskID == item.id && loss.title == "Photo of milk")
      try await phone.account.dismissMerges(of: item.id)
      #expect(try await phone.item("milk").badges == [])
      #expect(try await phone.account.screen().activity.contains { $0.kind == .loss } == false)
    }
  }

  @Test func twoPhotosThatBothAttachFirst_leaveOne() async throws {
    try await withDevices { _, laptop, phone in
      try await laptop.account.attachPhoto(Data("laptop's".utf8), thumbnail: nil, to: laptop.item("milk").id)
      try await phone.account.attachPhoto(Data("phone's".utf8), thumbnail: nil, to: phone.item("milk").id)
      try await laptop.sync()
      try await settle(phone, laptop)
      for device in [laptop, phone] {
        #expect(try await device.account.photos.data(of: device.item("milk").id) == Data("laptop's".utf8))
      }
    }
  }

  @Test func anEditIsUndone_andMadeAgain_withoutLosingLaterOnes() async throws {
    try await withDevices { _, laptop, phone in
      try await laptop.edit("milk") { $0.isDone = true }
      try await settle(laptop, phone)
      try await phone.edit("milk") { $0.title = "oat milk" }
      try await settle(laptop, phone)
      let edit = try #require(try await laptop.account.screen().activity.first)
      #expect(edit.title == "milk" && edit.change == "completed" && !edit.isUndone)
      try await laptop.account.undo(edit.id)
      try await settle(laptop, phone)
      #expect(try await phone.lines().first == "- oat milk [normal]")
      #expect(try await phone.titles() == ["Groceries 0/2"])
      #expect(try await laptop.account.screen().activity.first?.isUndone == true)
      try await laptop.account.undo(edit.id)
      try await settle(laptop, phone)
      #expect(try await phone.lines().first == "x oat milk [normal]")
    }
  }

  @Test func noPropertyOfATaskIsForgottenInAMerge() {
    let task = Task(listID: "", created: Date(), title: "any", rank: "1")
    #expect(Task.unlistedFields(of: task) == [])
  }
}
