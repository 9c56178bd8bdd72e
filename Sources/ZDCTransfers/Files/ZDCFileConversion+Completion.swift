public import Foundation

// Variants with completion blocks, as in the original framework. Each returns immediately. The progress that it returns
// counts bytes of cleartext and may be read on any thread. Cancelling it stops the work, and the block receives a
// `CancellationError`. The block is called once, on the given queue or else on the main queue. After an error no file
// remains.

extension ZDCFileConversion {
  /// Receives the file, or the error if there is none.
  public typealias FileCompletion = @Sendable (_ cryptoFile: ZDCCryptoFile?, _ error: (any Error)?) -> Void

  // MARK: Into a crypto file

  /// Like ``encryptCleartextFile(_:toCacheFile:)``, with a completion block.
  ///
  /// ```swift
  /// ZDCFileConversion.encryptCleartextFile(url, toCacheFile: cacheURL) { file, error in
  ///   if let file { importDocument(file, of: node) }
  /// }
  /// ```
  @discardableResult
  public static func encryptCleartextFile(
    _ source: URL, toCacheFile target: URL, completionQueue: DispatchQueue? = nil,
    completionBlock: @escaping FileCompletion
  ) -> Progress {
    run(completionQueue, completionBlock) { try await encryptCleartextFile(source, toCacheFile: target, progress: $0) }
  }

  /// Like ``encryptCleartextData(_:toCacheFile:)``, with a completion block.
  @discardableResult
  public static func encryptCleartextData(
    _ data: Data, toCacheFile target: URL, completionQueue: DispatchQueue? = nil,
    completionBlock: @escaping FileCompletion
  ) -> Progress {
    run(completionQueue, completionBlock) {
      try await seal(FileSealing(source: .memory([UInt8](data)), format: .cacheFile), target, $0)
    }
  }

  /// Like ``encryptCleartextFile(_:toCloudFile:metadata:thumbnail:)``, with a completion block.
  @discardableResult
  public static func encryptCleartextFile(
    _ source: URL, toCloudFile target: URL, metadata: Data? = nil, thumbnail: Data? = nil,
    completionQueue: DispatchQueue? = nil, completionBlock: @escaping FileCompletion
  ) -> Progress {
    run(completionQueue, completionBlock) {
      try await seal(cloud(.cleartextFile(source), metadata, thumbnail), target, $0)
    }
  }

  /// Like ``encryptCleartextData(_:toCloudFile:metadata:thumbnail:)``, with a completion block.
  @discardableResult
  public static func encryptCleartextData(
    _ data: Data, toCloudFile target: URL, metadata: Data? = nil, thumbnail: Data? = nil,
    completionQueue: DispatchQueue? = nil, completionBlock: @escaping FileCompletion
  ) -> Progress {
    run(completionQueue, completionBlock) {
      try await seal(cloud(.memory([UInt8](data)), metadata, thumbnail), target, $0)
    }
  }

  // MARK: Between crypto files

  /// Like ``convertCacheFile(_:toCloudFile:metadata:thumbnail:)``, with a completion block.
  @discardableResult
  public static func convertCacheFile(
    _ cryptoFile: ZDCCryptoFile, toCloudFile target: URL, metadata: Data? = nil, thumbnail: Data? = nil,
    completionQueue: DispatchQueue? = nil, completionBlock: @escaping FileCompletion
  ) -> Progress {
    run(completionQueue, completionBlock) {
      try await seal(cloud(.cryptoFile(cryptoFile), metadata, thumbnail), target, $0)
    }
  }

  /// Like ``convertCloudFile(_:toCacheFile:)``, with a completion block.
  @discardableResult
  public static func convertCloudFile(
    _ cryptoFile: ZDCCryptoFile, toCacheFile target: URL, completionQueue: DispatchQueue? = nil,
    completionBlock: @escaping FileCompletion
  ) -> Progress {
    run(completionQueue, completionBlock) { try await convertCloudFile(cryptoFile, toCacheFile: target, progress: $0) }
  }

  /// Like ``reEncryptFile(_:to:)``, with a completion block.
  @discardableResult
  public static func reEncryptFile(
    _ cryptoFile: ZDCCryptoFile, to target: URL, completionQueue: DispatchQueue? = nil,
    completionBlock: @escaping FileCompletion
  ) -> Progress {
    run(completionQueue, completionBlock) { try await reEncryptFile(cryptoFile, to: target, progress: $0) }
  }

  // MARK: Out of a crypto file

  /// Like ``decryptCryptoFile(intoMemory:)``, with a completion block.
  ///
  /// ```swift
  /// ZDCFileConversion.decryptCryptoFile(intoMemory: file) { data, error in
  ///   if let data { show([String(decoding: data, as: UTF8.self)]) }
  /// }
  /// ```
  @discardableResult
  public static func decryptCryptoFile(
    intoMemory cryptoFile: ZDCCryptoFile, completionQueue: DispatchQueue? = nil,
    completionBlock: @escaping @Sendable (_ cleartext: Data?, _ error: (any Error)?) -> Void
  ) -> Progress {
    run(completionQueue, completionBlock) { try await decryptCryptoFile(intoMemory: cryptoFile, progress: $0) }
  }

  /// Like ``decryptCryptoFile(_:to:)-(_,URL)``, with a completion block.
  @discardableResult
  public static func decryptCryptoFile(
    _ cryptoFile: ZDCCryptoFile, to url: URL, completionQueue: DispatchQueue? = nil,
    completionBlock: @escaping @Sendable (_ error: (any Error)?) -> Void
  ) -> Progress {
    run(completionQueue) {
      completionBlock($1)
    } work: {
      try await decryptCryptoFile(cryptoFile, to: url, progress: $0)
    }
  }

  /// Like ``decryptCloudFile(_:to:)``, with a completion block.
  @discardableResult
  public static func decryptCloudFile(
    _ cryptoFile: ZDCCryptoFile, to url: URL, completionQueue: DispatchQueue? = nil,
    completionBlock: @escaping @Sendable (_ metadata: Data?, _ thumbnail: Data?, _ error: (any Error)?) -> Void
  ) -> Progress {
    run(completionQueue) { (sections: (Data?, Data?)?, error) in
      completionBlock(sections?.0, sections?.1, error)
    } work: {
      try await decryptCryptoFile(cryptoFile, to: url, progress: $0)
      return try sections(of: cryptoFile, beside: url)
    }
  }

  private static func run<Value: Sendable>(
    _ queue: DispatchQueue?, _ complete: @escaping @Sendable (Value?, (any Error)?) -> Void,
    work: @escaping @Sendable (Progress) async throws -> Value
  ) -> Progress {
    let progress = Progress.steady()
    Task {
      let result: Result<Value, any Error>
      do { result = .success(try await work(progress)) } catch { result = .failure(error) }
      (queue ?? .main).async {
        switch result {
        case .success(let value): complete(value, nil)
        case .failure(let error): complete(nil, error)
        }
      }
    }
    return progress
  }
}
