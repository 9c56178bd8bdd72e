internal import NIOCore

/// Writes the hashes of content into one object. Only one part of them is in memory, however many there are.
struct S3HashWriter {
  private let client: S3Client
  private let key: String
  private let partBytes: Int
  private var buffer = ByteBuffer()
  private var upload: String?
  private var parts = 0
  private var length: UInt64 = 0

  /// - Parameter partBytes: at least 5 MiB, which object stores require of all parts but the last.
  init(_ client: S3Client, key: String, partBytes: Int) {
    (self.client, self.key, self.partBytes) = (client, key, partBytes)
  }

  mutating func append(_ bytes: [UInt8]) async throws {
    buffer.writeBytes(bytes)
    length += UInt64(bytes.count)
    while buffer.readableBytes > partBytes, let part = buffer.readSlice(length: partBytes) { try await put(part) }
    buffer.discardReadBytes()
  }

  /// Makes the object durable, in place of an earlier one.
  mutating func finish() async throws {
    guard upload != nil else { return try await client.put(key, buffer) }
    try await put(buffer)
    guard let upload else { return }
    do { try await client.complete(upload, key, try await client.parts(of: upload, key)) } catch let failure
      as S3Failure
    {
      // The answer to an attempt that succeeded may have been lost.
      guard try await client.length(key) == length else { throw failure }
    }
  }

  private mutating func put(_ part: ByteBuffer) async throws {
    let id = try await started()
    parts += 1
    try await client.putPart(parts, of: id, key, part)
  }

  private mutating func started() async throws -> String {
    if let upload { return upload }
    // A process that was stopped has left them.
    for old in try await client.uploads(of: key) { try await client.abort(old) }
    let new = try await client.startUpload(key)
    upload = new
    return new
  }
}
