public import Foundation

/// Where the bytes are that the app wants uploaded (seed 000): memory, a file, or an answer that takes a while.
///
/// ```swift
/// ZDCData(data: try JSONEncoder().encode(task))
/// ZDCData(cleartextFileURL: imageURL)
/// ZDCData { try await renderer.export(task) }
/// ```
///
/// The bytes need not be a snapshot: a file that changes while it is read is read again.
public struct ZDCData: Sendable {
  package enum Source: Sendable {
    case memory(Data)
    case cleartextFile(URL)
    case cryptoFile(ZDCCryptoFile)
    case promise(ZDCDataPromise)
    case provider(@Sendable () async throws -> ZDCData)
  }

  package let source: Source
  /// Whether the bytes show all changes that were queued for the node until now. Then one upload satisfies them all.
  ///
  /// Set it to false to have every queued upload sent in turn, each with its own version.
  public var isLatestVersion = true

  /// No bytes: a node without content of its own, such as a folder.
  public init() {
    self.init(data: Data())
  }

  /// Bytes in memory. Empty content is legal.
  public init(data: Data) {
    source = .memory(data)
  }

  /// A file in the clear, of any size. It is read when it is sent, in slices, and never changed or deleted.
  public init(cleartextFileURL: URL) {
    source = .cleartextFile(cleartextFileURL)
  }

  /// A file that the framework sealed, for example one from the disk manager.
  public init(cryptoFile: ZDCCryptoFile) {
    source = .cryptoFile(cryptoFile)
  }

  /// An answer that comes later. The upload waits; other nodes do not.
  public init(promise: ZDCDataPromise) {
    source = .promise(promise)
  }

  /// An answer that is awaited outside the transaction. If it throws, the upload is parked as "no data from the app".
  public init(_ provider: @escaping @Sendable () async throws -> Data) {
    source = .provider { ZDCData(data: try await provider()) }
  }

  /// Like ``init(_:)-(()->Data)``, for an answer that may be a file.
  public init(_ provider: @escaping @Sendable () async throws -> ZDCData) {
    source = .provider(provider)
  }
}

/// The app has no content for a node: it rejected its promise, or its promises go round in a circle.
package struct NoDataFromApp: Error {}

extension ZDCData {
  /// Promises that lead to promises, at most.
  private static let chainLimit = 64

  /// What is at hand; nil if it has to be waited for.
  ///
  /// - Throws: what a promise was rejected with; the file system's error.
  package func immediateSource() throws -> ContentSource? {
    var data = self
    for _ in 0..<Self.chainLimit {
      switch data.source {
      case .promise(let promise):
        guard let next = try promise.resultNow?.get() else { return nil }
        data = next
      case .provider: return nil
      case .memory, .cleartextFile, .cryptoFile: return try data.directSource()
      }
    }
    throw NoDataFromApp()
  }

  /// Waits for promises and providers.
  ///
  /// - Throws: what they throw; the file system's error; `CancellationError`.
  package func source() async throws -> ContentSource {
    var data = self
    for _ in 0..<Self.chainLimit {
      switch data.source {
      case .promise(let promise): data = try await promise.result()
      case .provider(let provider): data = try await provider()
      case .memory, .cleartextFile, .cryptoFile: return try data.directSource()
      }
    }
    throw NoDataFromApp()
  }

  /// Whether it is a promise, or the end of a chain of them, that has no answer yet.
  package var isPromised: Bool { openEnd != nil }

  /// Whether the app has to do something: an open promise that no closure of its own is working on.
  package var isLeftToTheApp: Bool {
    if case .promise(let promise) = openEnd?.source { return !promise.isAtWork }
    return false
  }

  private var openEnd: ZDCData? {
    var data = self
    for _ in 0..<Self.chainLimit {
      switch data.source {
      case .promise(let promise):
        guard let result = promise.resultNow else { return data }
        guard case .success(let next) = result else { return nil }
        data = next
      case .provider: return data
      case .memory, .cleartextFile, .cryptoFile: return nil
      }
    }
    return nil
  }

  private func directSource() throws -> ContentSource {
    switch source {
    case .memory(let data): .memory([UInt8](data))
    case .cleartextFile(let url): .file(try FileSource(url: url))
    case .cryptoFile(let file): .cryptoFile(file)
    case .promise, .provider: throw NoDataFromApp()
    }
  }
}
