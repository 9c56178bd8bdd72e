public import Foundation
internal import ZDCSupport

/// The bytes that the app wants uploaded: in memory, in a file, or supplied later.
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
  /// Whether the bytes include all changes queued for the node so far. If so, one upload satisfies them all.
  ///
  /// Set it to false to send every queued upload in turn, each with its own version.
  ///
  /// ```swift
  /// var data = ZDCData(data: try JSONEncoder().encode(task))
  /// data.isLatestVersion = false  // every queued edit becomes a version in the cloud
  /// return data
  /// ```
  public var isLatestVersion = true

  /// Creates a value without bytes, for a node without content such as a folder.
  ///
  /// ```swift
  /// return ZDCData()  // a folder
  /// ```
  public init() {
    self.init(data: Data())
  }

  /// Creates a value from bytes in memory. Empty content is legal.
  ///
  /// ```swift
  /// return ZDCData(data: try JSONEncoder().encode(task))
  /// ```
  public init(data: Data) {
    source = .memory(data)
  }

  /// Creates a value from a cleartext file of any size. The file is read in slices when it is sent, and never changed
  /// or deleted.
  ///
  /// ```swift
  /// return ZDCData(cleartextFileURL: imageURL)
  /// ```
  public init(cleartextFileURL: URL) {
    source = .cleartextFile(cleartextFileURL)
  }

  /// Creates a value from a file that the framework sealed, for example one from the disk manager.
  ///
  /// The file is opened and sealed again under the node's own key, in slices.
  ///
  /// ```swift
  /// guard let file = session.diskManager.nodeData(node)?.cryptoFile else { throw ZDCError(.noDataFromApp) }
  /// return ZDCData(cryptoFile: file)
  /// ```
  public init(cryptoFile: ZDCCryptoFile) {
    source = .cryptoFile(cryptoFile)
  }

  /// Creates a value from a promise that is answered later. The node's upload waits for it; other nodes do not.
  ///
  /// ```swift
  /// let promise = ZDCDataPromise()
  /// camera.takePicture { jpeg in
  ///   if let jpeg { promise.fulfill(ZDCData(data: jpeg)) } else { promise.reject() }
  /// }
  /// return ZDCData(promise: promise)
  /// ```
  public init(promise: ZDCDataPromise) {
    source = .promise(promise)
  }

  /// Creates a value from a closure that is awaited outside the transaction. If it throws, the upload is parked as "no
  /// data from the app".
  ///
  /// ```swift
  /// ZDCData { [taskID] in
  ///   try await renderer.preview(of: taskID)
  /// }
  /// ```
  public init(_ provider: @escaping @Sendable () async throws -> Data) {
    source = .provider { ZDCData(data: try await provider()) }
  }

  /// Like ``init(_:)-(()->Data)``, for a closure that may return a file.
  public init(_ provider: @escaping @Sendable () async throws -> ZDCData) {
    source = .provider(provider)
  }
}

extension ZDCData {
  /// Maximum number of promises in a chain.
  private static let chainLimit = 64

  /// Returns the source if it is available now; nil if it must be awaited.
  ///
  /// - Throws: the error that a promise was rejected with; the file system's error.
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
    throw ZDCError(.noDataFromApp)
  }

  /// Returns the source after waiting for promises and providers.
  ///
  /// - Throws: their errors; the file system's error; `CancellationError`.
  package func source() async throws -> ContentSource {
    var data = self
    for _ in 0..<Self.chainLimit {
      switch data.source {
      case .promise(let promise): data = try await promise.result()
      case .provider(let provider): data = try await provider()
      case .memory, .cleartextFile, .cryptoFile: return try data.directSource()
      }
    }
    throw ZDCError(.noDataFromApp)
  }

  /// Whether the value, or the end of its chain of promises, has no answer yet.
  package var isPromised: Bool { openEnd != nil }

  /// Whether the app must act: the value is an open promise without a running closure.
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
    case .promise, .provider: throw ZDCError(.noDataFromApp)
    }
  }
}
