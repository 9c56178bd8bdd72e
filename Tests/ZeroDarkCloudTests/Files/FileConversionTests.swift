import Foundation
import Testing
import ZDCProtocol

@testable import ZDCTransfers
@testable import ZeroDarkCloud

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Darwin)
  import Darwin
#endif

@Suite struct FileConversionTests {
  private let folder: URL

  init() throws {
    folder = FileManager.default.temporaryDirectory.appendingPathComponent("zdc-files-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
  }

  private func url(_ name: String) -> URL { folder.appendingPathComponent(name) }

  /// Removes the test's folder.
  private func end() throws { try FileManager.default.removeItem(at: folder) }

  private static let sizes = [0, 1, 16_384, 65_536 - 64, 65_536, 65_537, 300_000, 3_000_000]

  // MARK: Round trips

  @Test(arguments: sizes) func everyConversion_roundTrips(size: Int) throws {
    let data = Data(pattern(size))
    try data.write(to: url("clear"))
    let files = [
      try ZDCFileConversion.encryptCleartextFile(url("clear"), toCacheFile: url("1")),
      try ZDCFileConversion.encryptCleartextData(data, toCacheFile: url("2")),
      try ZDCFileConversion.encryptCleartextFile(
        url("clear"), toCloudFile: url("3"), metadata: Data([1, 2]), thumbnail: Data(pattern(700))),
      try ZDCFileConversion.encryptCleartextData(
        data, toCloudFile: url("4"), metadata: Data([1, 2]), thumbnail: Data(pattern(700))),
      try ZDCFileConversion.encryptCleartext(ofSize: UInt64(size), toCacheFile: url("5")) { write in
        for start in stride(from: 0, to: size, by: 10_000) { try write(data[start..<min(start + 10_000, size)]) }
      },
    ]
    #expect(files.map(\.fileFormat) == [.cacheFile, .cacheFile, .cloudFile, .cloudFile, .cacheFile])
    for (index, file) in files.enumerated() {
      #expect(try ZDCFileConversion.decryptCryptoFile(intoMemory: file) == data)
      let target = url("clear\(index)")
      let sections = try ZDCFileConversion.decryptCloudFile(file, to: target)
      #expect(try Data(contentsOf: target) == data)
      #expect(sections.metadata == (file.fileFormat == .cloudFile ? Data([1, 2]) : nil))
      #expect(sections.thumbnail == (file.fileFormat == .cloudFile ? Data(pattern(700)) : nil))
      let stored = try Data(contentsOf: file.fileURL)
      #expect(UInt64(stored.count) == file.encryptedFileSize)
      #expect(size < 100 || stored.range(of: data.prefix(100)) == nil)
    }
    try end()
  }

  @Test func fromOneFormatToTheOther_andUnderAnotherKey() throws {
    let data = Data(pattern(200_000))
    let cache = try ZDCFileConversion.encryptCleartextData(data, toCacheFile: url("cache"))
    let cloud = try ZDCFileConversion.convertCacheFile(
      cache, toCloudFile: url("cloud"), metadata: Data([7]), thumbnail: nil)
    #expect(try ZDCFileConversion.decryptMetadata(of: cloud) == Data([7]))
    let back = try ZDCFileConversion.convertCloudFile(cloud, toCacheFile: url("back"))
    #expect(back.metadataSize == 0)
    let again = try ZDCFileConversion.reEncryptFile(cloud, to: url("again"))
    #expect(again.fileFormat == .cloudFile)
    #expect(try ZDCFileConversion.decryptMetadata(of: again) == Data([7]))
    for file in [cache, cloud, back, again] {
      #expect(try ZDCFileConversion.decryptCryptoFile(intoMemory: file) == data)
    }
    // With another key and another salt, no leaf stays the same.
    let (before, after) = (try Data(contentsOf: cloud.fileURL), try Data(contentsOf: again.fileURL))
    #expect(before.count == after.count)
    #expect(before.suffix(1_000) != after.suffix(1_000))
    let mixed = ZDCCryptoFile(fileURL: again.fileURL, reference: cloud.reference, leaves: cloud.leaves)
    #expect(throws: ZDCSecurityError(.contentHashMismatch)) {
      try ZDCFileConversion.decryptCryptoFile(intoMemory: mixed)
    }
    try end()
  }

  // MARK: With progress

  @Test func asynchronously_withProgress() async throws {
    let data = Data(pattern(3_000_000))
    try data.write(to: url("clear"))
    let progress = Progress(totalUnitCount: 0)
    let cache = try await ZDCFileConversion.encryptCleartextFile(
      url("clear"), toCacheFile: url("cache"), progress: progress)
    #expect((progress.completedUnitCount, progress.totalUnitCount) == (3_000_000, 3_000_000))
    let cloud = try await ZDCFileConversion.convertCacheFile(
      cache, toCloudFile: url("cloud"), progress: Progress(totalUnitCount: 0))
    let again = try await ZDCFileConversion.reEncryptFile(
      cloud, to: url("again"), progress: Progress(totalUnitCount: 0))
    let back = try await ZDCFileConversion.convertCloudFile(
      again, toCacheFile: url("back"), progress: Progress(totalUnitCount: 0))
    try await ZDCFileConversion.decryptCryptoFile(back, to: url("target"), progress: progress)
    #expect(progress.isFinished)
    #expect(try Data(contentsOf: url("target")) == data)
    #expect(try await ZDCFileConversion.decryptCryptoFile(intoMemory: back, progress: progress) == data)
    var chunks: [Data] = []
    for try await chunk in ZDCFileConversion.cleartextChunks(of: back) { chunks.append(chunk) }
    #expect(chunks.reduce(Data(), +) == data)
    #expect(chunks.allSatisfy { $0.count <= 1 << 20 })
    let empty = try ZDCFileConversion.encryptCleartextData(Data(), toCacheFile: url("empty"))
    #expect(try await ZDCFileConversion.decryptCryptoFile(intoMemory: empty, progress: progress) == Data())
    #expect(progress.isFinished)
    try end()
  }

  /// The original API's forms with completion blocks: each calls its block once, and its progress reaches the end.
  @Test func withCompletionBlocks() async throws {
    let data = Data(pattern(300_000))
    try data.write(to: url("clear"))
    let source = url("clear")
    func file(_ start: (@escaping ZDCFileConversion.FileCompletion) -> Progress) async throws -> ZDCCryptoFile {
      var progress: Progress?
      let result: (ZDCCryptoFile?, (any Error)?) = await withCheckedContinuation { continuation in
        progress = start { continuation.resume(returning: ($0, $1)) }
      }
      if let error = result.1 { throw error }
      #expect(progress?.completedUnitCount == 300_000 && progress?.totalUnitCount == 300_000)
      return try #require(result.0)
    }
    let queue = DispatchQueue.global()
    let targets = (0..<7).map { url("\($0)") }
    let files = [
      try await file {
        ZDCFileConversion.encryptCleartextFile(
          source, toCacheFile: targets[0], completionQueue: queue, completionBlock: $0)
      },
      try await file {
        ZDCFileConversion.encryptCleartextData(data, toCacheFile: targets[1], completionBlock: $0)
      },
      try await file {
        ZDCFileConversion.encryptCleartextFile(
          source, toCloudFile: targets[2], metadata: Data([1]), completionQueue: queue, completionBlock: $0)
      },
      try await file {
        ZDCFileConversion.encryptCleartextData(
          data, toCloudFile: targets[3], metadata: Data([1]), thumbnail: Data([2]), completionQueue: queue,
          completionBlock: $0)
      },
    ]
    let made =
      files + [
        try await file {
          ZDCFileConversion.convertCacheFile(
            files[0], toCloudFile: targets[4], completionQueue: queue, completionBlock: $0)
        },
        try await file {
          ZDCFileConversion.convertCloudFile(
            files[3], toCacheFile: targets[5], completionQueue: queue, completionBlock: $0)
        },
        try await file {
          ZDCFileConversion.reEncryptFile(files[3], to: targets[6], completionQueue: queue, completionBlock: $0)
        },
      ]
    for file in made {
      let opened: Data? = await withCheckedContinuation { continuation in
        ZDCFileConversion.decryptCryptoFile(intoMemory: file, completionQueue: queue) { data, _ in
          continuation.resume(returning: data)
        }
      }
      #expect(opened == data)
    }
    let (plain, whole) = (url("plain"), url("whole"))
    let error: (any Error)? = await withCheckedContinuation { continuation in
      ZDCFileConversion.decryptCryptoFile(made[0], to: plain, completionQueue: queue) {
        continuation.resume(returning: $0)
      }
    }
    #expect(error == nil)
    #expect(try Data(contentsOf: plain) == data)
    let sections: [Data?] = await withCheckedContinuation { continuation in
      ZDCFileConversion.decryptCloudFile(made[3], to: whole, completionQueue: queue) { metadata, thumbnail, _ in
        continuation.resume(returning: [metadata, thumbnail])
      }
    }
    #expect(sections == [Data([1]), Data([2])])
    #expect(try Data(contentsOf: whole) == data)
    await #expect(throws: ZDCError.self) {
      _ = try await file {
        ZDCFileConversion.encryptCleartextFile(
          source, toCacheFile: targets[0], completionQueue: queue, completionBlock: $0)
      }
    }
    try end()
  }

  /// The progress is cancelled on another thread while the work runs.
  @Test func aProgressThatIsCancelled_endsItsBlocksWork() async throws {
    try Data(pattern(3_000_000)).write(to: url("clear"))
    let (source, target) = (url("clear"), url("cache"))
    let error: (any Error)? = await withCheckedContinuation { continuation in
      let progress = ZDCFileConversion.encryptCleartextFile(
        source, toCacheFile: target, completionQueue: .global()
      ) { file, error in
        continuation.resume(returning: error)
      }
      progress.cancel()
    }
    // The work may have finished before the cancellation.
    #expect(error == nil || error is CancellationError)
    let left = try FileManager.default.contentsOfDirectory(atPath: folder.path).sorted()
    #expect(left == (error == nil ? ["cache", "clear"] : ["clear"]))
    try end()
  }

  @Test(arguments: [true, false]) func aCancelledConversion_leavesNoFile(byProgress: Bool) async throws {
    try Data(pattern(3_000_000)).write(to: url("clear"))
    let (source, target, progress) = (url("clear"), url("cache"), Progress(totalUnitCount: 0))
    if byProgress { progress.cancel() }
    let task = Task {
      if !byProgress { withUnsafeCurrentTask { $0?.cancel() } }
      return try await ZDCFileConversion.encryptCleartextFile(source, toCacheFile: target, progress: progress)
    }
    await #expect(throws: CancellationError.self) { try await task.value }
    #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path) == ["clear"])
    try end()
  }

  // MARK: Damaged and changing files

  @Test func aFileThatChangesWhileItIsRead_isFoundOut() throws {
    try Data(pattern(3_000_000)).write(to: url("clear"))
    let source = url("clear")
    var isFirst = true
    let error = #expect(throws: ZDCError.self) {
      try FileSealing(source: .cleartextFile(source), format: .cacheFile).write(to: url("cache")) { _ in
        guard isFirst else { return }
        isFirst = false
        let handle = try FileHandle(forWritingTo: source)
        try handle.seekToEnd()
        try handle.write(contentsOf: Data([1]))
        try handle.close()
      }
    }
    #expect(error?.code == .fileModifiedDuringRead)
    for size in [10, 30] as [UInt64] {
      let wrong = #expect(throws: ZDCError.self) {
        try ZDCFileConversion.encryptCleartext(ofSize: size, toCacheFile: url("cache")) { try $0(Data(pattern(20))) }
      }
      #expect(wrong?.code == .fileModifiedDuringRead)
    }
    #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path) == ["clear"])
    try end()
  }

  @Test func aLinkToAFile_isThatFile() throws {
    let data = Data(pattern(1_000))
    try data.write(to: url("clear"))
    try FileManager.default.createSymbolicLink(at: url("link"), withDestinationURL: url("clear"))
    let file = try ZDCFileConversion.encryptCleartextFile(url("link"), toCacheFile: url("cache"))
    #expect(try ZDCFileConversion.decryptCryptoFile(intoMemory: file) == data)
    try end()
  }

  @Test func aPipe_isNoContent() throws {
    #expect(mkfifo(url("pipe").path, 0o600) == 0)
    let error = #expect(throws: ZDCError.self) { try FileSource(url: url("pipe")) }
    #expect(error?.code == .fileFailure)
    try end()
  }

  /// A file under the name of an unfinished download may be another user's, or have another name elsewhere.
  @Test func onlyAnOwnFile_isContinued() throws {
    for name in ["linked", "others", "own"] { try Data([1]).write(to: url(name)) }
    try FileManager.default.linkItem(at: url("linked"), to: url("again"))
    #expect(mkfifo(url("pipe").path, 0o600) == 0)
    var names = ["linked", "again", "pipe"]
    // Only root can give a file away.
    if chown(url("others").path, 1, 1) == 0 { names.append("others") }
    for name in names { #expect(try LocalFile.resume(url(name)) == nil, "\(name)") }
    for name in ["own", "new"] { #expect(try LocalFile.resume(url(name)) != nil, "\(name)") }
    try end()
  }

  @Test func nothingIsOverwritten_andNothingMissingIsRead() throws {
    try Data([1]).write(to: url("there"))
    for body in [
      { try ZDCFileConversion.encryptCleartextData(Data(), toCacheFile: url("there")) },
      { try ZDCFileConversion.encryptCleartextFile(url("missing"), toCloudFile: url("new")) },
    ] {
      let error = #expect(throws: ZDCError.self) { try body() }
      #expect(error?.code == .fileFailure)
    }
    #expect(try Data(contentsOf: url("there")) == Data([1]))
    try end()
  }
}

@Suite struct FileReaderTests {
  private static func withFile(_ size: Int, _ body: (ZDCCryptoFile, [UInt8]) throws -> Void) throws {
    let url = FileManager.default.temporaryDirectory.appendingPathComponent("zdc-reader-\(UUID().uuidString)")
    defer { try? FileManager.default.removeItem(at: url) }
    let data = pattern(size)
    try body(
      try ZDCFileConversion.encryptCleartextData(
        Data(data), toCloudFile: url, metadata: Data(pattern(700)), thumbnail: Data(pattern(70_000))), data)
  }

  @Test(arguments: 0..<20 as Range<UInt64>) func anyRange_isWhatASliceOfTheDataIs(seed: UInt64) throws {
    var random = SeededGenerator(seed: seed)
    let size = Int.random(in: 0...400_000, using: &random)
    try Self.withFile(size) { file, data in
      let reader = ZDCFileReader(cryptoFile: file)
      #expect(reader.cleartextFileSize == nil)
      try reader.openFile()
      try reader.openFile()
      #expect(reader.cleartextFileSize == UInt64(size))
      for _ in 0..<50 {
        let start = Int.random(in: 0...size + 10, using: &random)
        let end = Int.random(
          in: start...start + [1, 100, 70_000, 400_000].randomElement(using: &random)!, using: &random)
        let expected = data[min(start, size)..<min(end, size)]
        #expect(try reader.data(in: UInt64(start)..<UInt64(end)) == Data(expected))
      }
      reader.close()
      #expect(reader.cleartextFileSize == nil)
      if size > 0 { #expect(throws: ZDCError.self) { try reader.data(in: 0..<1) } }
    }
  }

  @Test func fromManyThreads() async throws {
    let url = FileManager.default.temporaryDirectory.appendingPathComponent("zdc-reader-\(UUID().uuidString)")
    defer { try? FileManager.default.removeItem(at: url) }
    let data = pattern(400_000)
    let reader = ZDCFileReader(cryptoFile: try ZDCFileConversion.encryptCleartextData(Data(data), toCacheFile: url))
    try reader.openFile()
    await withTaskGroup(of: Void.self) { group in
      for start in stride(from: 0, to: 390_000, by: 9_999) {
        group.addTask {
          let got = try? reader.data(in: UInt64(start)..<UInt64(start + 9_000))
          #expect(got == Data(data[start..<start + 9_000]))
        }
      }
    }
  }

  /// An altered leaf cannot be read; the others can.
  @Test func everyLeafIsVerified() throws {
    try Self.withFile(400_000) { file, data in
      let handle = try FileHandle(forUpdating: file.fileURL)
      try handle.seek(toOffset: 200_000)
      let byte = try #require(try handle.read(upToCount: 1)?.first)
      try handle.seek(toOffset: 200_000)
      try handle.write(contentsOf: Data([byte ^ 1]))
      try handle.close()
      let reader = ZDCFileReader(cryptoFile: file)
      try reader.openFile()
      #expect(try reader.data(in: 0..<10) == Data(data[..<10]))
      #expect(try reader.data(in: 399_990..<400_000) == Data(data[399_990...]))
      #expect(throws: ZDCSecurityError(.contentHashMismatch)) { try reader.data(in: 129_000..<129_010) }
      #expect(try reader.data(in: 0..<10) == Data(data[..<10]))
    }
  }

  @Test func aFileOfAnotherLength_isNotOpened() throws {
    try Self.withFile(100_000) { file, _ in
      let bytes = try Data(contentsOf: file.fileURL)
      try bytes.dropLast().write(to: file.fileURL)
      #expect(throws: ZDCSecurityError(.contentTruncated)) { try ZDCFileReader(cryptoFile: file).openFile() }
      try (bytes + [0]).write(to: file.fileURL)
      #expect(throws: ZDCSecurityError(.contentTrailingData)) { try ZDCFileReader(cryptoFile: file).openFile() }
    }
  }

  @Test func aBufferThatIsTooShort_isRefused() throws {
    try Self.withFile(1_000) { file, _ in
      let reader = ZDCFileReader(cryptoFile: file)
      try reader.openFile()
      var buffer = [UInt8](repeating: 0, count: 10)
      let error = #expect(throws: ZDCError.self) {
        try buffer.withUnsafeMutableBytes { try reader.getBytes($0, range: 0..<11) }
      }
      #expect(error?.code == .invalidParameter)
      #expect(try buffer.withUnsafeMutableBytes { try reader.getBytes($0, range: 995..<2_000) } == 5)
    }
  }
}
