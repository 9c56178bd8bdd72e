import Foundation
import Testing
import ZDCCrypto

@testable import ZDCTransfers
@testable import ZeroDarkCloud

@Suite struct DataTests {
  struct Failure: Error {}

  private func bytes(_ data: ZDCData) async throws -> [UInt8] { try await data.source().readAll() }

  @Test func memory_mayBeEmpty() async throws {
    #expect(try await bytes(ZDCData(data: Data())) == [])
    #expect(try await bytes(ZDCData()) == [])
    #expect(try await bytes(ZDCData(data: Data("milk".utf8))) == Array("milk".utf8))
    #expect(try ZDCData(data: Data([1])).immediateSource()?.size == 1)
  }

  @Test func file_isReadWhenItIsNeeded_aMissingOneIsAnError() async throws {
    let url = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString)
    await #expect(throws: (any Error).self) { try await ZDCData(cleartextFileURL: url).source() }
    try Data("milk".utf8).write(to: url)
    defer { try? FileManager.default.removeItem(at: url) }
    #expect(try await bytes(ZDCData(cleartextFileURL: url)) == Array("milk".utf8))
  }

  /// - a small file is changed after the app returns it and before it is read, or replaced by one of the same size
  @Test func aFileThatChanged_isNotTakenForTheOldOne() async throws {
    let url = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString)
    try Data("milk".utf8).write(to: url)
    defer { try? FileManager.default.removeItem(at: url) }
    let longer = try #require(try ZDCData(cleartextFileURL: url).immediateSource())
    try Data("milk and bread".utf8).write(to: url)
    #expect(throws: CryptoFailure.sourceChanged) { try longer.readAll() }
    let replaced = try #require(try ZDCData(cleartextFileURL: url).immediateSource())
    try Data("milk and beans".utf8).write(to: url, options: .atomic)
    #expect(throws: CryptoFailure.sourceChanged) { try replaced.readAll() }
    #expect(try await bytes(ZDCData(cleartextFileURL: url)) == Array("milk and beans".utf8))
  }

  @Test func promise_isWaitedFor_andTheFirstAnswerCounts() async throws {
    let promise = ZDCDataPromise()
    let data = ZDCData(promise: promise)
    #expect(try data.immediateSource() == nil)
    async let first = bytes(data)
    async let second = bytes(data)
    promise.fulfill(ZDCData(data: Data([1])))
    promise.fulfill(ZDCData(data: Data([2])))
    promise.reject()
    #expect(try await first == [1])
    #expect(try await second == [1])
    #expect(try data.immediateSource()?.size == 1)
  }

  @Test func rejectedPromise_isNoContent_neverEmptyContent() async throws {
    let promise = ZDCDataPromise()
    promise.reject()
    #expect(await zdcCodeOf { _ = try await ZDCData(promise: promise).source() } == .noDataFromApp)
    #expect(zdcCode { _ = try ZDCData(promise: promise).immediateSource() } == .noDataFromApp)
    let other = ZDCDataPromise()
    other.reject(Failure())
    await #expect(throws: Failure.self) { try await ZDCData(promise: other).source() }
  }

  @Test func closureForms_answerByThemselves() async throws {
    let slow = ZDCDataPromise { promise in promise.fulfill(ZDCData(data: Data([3]))) }
    #expect(try await bytes(ZDCData(promise: slow)) == [3])
    let task = ZDCDataPromise { () async throws -> ZDCData in throw Failure() }
    await #expect(throws: Failure.self) { try await ZDCData(promise: task).source() }
    let provider = ZDCData { () async throws -> Data in Data([4]) }
    #expect(try await bytes(provider) == [4])
    #expect(try provider.immediateSource() == nil)
  }

  @Test func chainedPromises_leadToTheLast_aCircleIsAnError() async throws {
    let (first, last) = (ZDCDataPromise(), ZDCDataPromise())
    first.fulfill(ZDCData(promise: last))
    last.fulfill(ZDCData(data: Data([5])))
    #expect(try await bytes(ZDCData(promise: first)) == [5])
    let circle = ZDCDataPromise()
    circle.fulfill(ZDCData(promise: circle))
    #expect(await zdcCodeOf { _ = try await ZDCData(promise: circle).source() } == .noDataFromApp)
    #expect(zdcCode { _ = try ZDCData(promise: circle).immediateSource() } == .noDataFromApp)
  }

  @Test func cancelledWait_ends_andThePromiseStaysGood() async throws {
    let promise = ZDCDataPromise()
    let waiting = Task { try await ZDCData(promise: promise).source() }
    waiting.cancel()
    await #expect(throws: CancellationError.self) { _ = try await waiting.value }
    promise.fulfill(ZDCData(data: Data([6])))
    #expect(try await bytes(ZDCData(promise: promise)) == [6])
  }
}
