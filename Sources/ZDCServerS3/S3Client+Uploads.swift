internal import NIOCore
internal import NIOHTTP1

/// A multipart upload that has not ended.
struct S3Upload: Sendable, Hashable {
  var key: String
  var id: String
  /// The time when it began, as text that sorts.
  var initiated: String
}

/// A part that the store has.
struct S3Part: Sendable, Hashable {
  /// From 1.
  var number: Int
  var tag: String
  var length: UInt64
}

// Multipart uploads.
extension S3Client {
  func startUpload(_ key: String) async throws -> String {
    let request = S3Request(operation: "start upload", method: .POST, key: key, query: [("uploads", "")])
    guard let id = try await answer(request)["UploadId"], !id.isEmpty else {
      throw S3Failure(status: 200, code: "malformed answer", operation: request.operation)
    }
    return id
  }

  func putPart(_ number: Int, of upload: String, _ key: String, _ body: ByteBuffer) async throws {
    let query = [("partNumber", "\(number)"), ("uploadId", upload)]
    let request = S3Request(operation: "put part", method: .PUT, key: key, query: query, body: body)
    _ = try await collect(request, upTo: 1 << 16)
  }

  /// Returns all parts, by their numbers.
  func parts(of upload: String, _ key: String) async throws -> [S3Part] {
    var parts: [S3Part] = []
    var marker: String?
    repeat {
      let query = [("uploadId", upload)] + (marker.map { [("part-number-marker", $0)] } ?? [])
      let answer = try await answer(S3Request(operation: "list parts", method: .GET, key: key, query: query))
      parts += answer.all("Part").compactMap { part in
        guard let number = part["PartNumber"].flatMap(Int.init), let length = part["Size"].flatMap(UInt64.init)
        else { return nil }
        return S3Part(number: number, tag: part["ETag"] ?? "", length: length)
      }
      marker = answer["IsTruncated"] == "true" ? answer["NextPartNumberMarker"] : nil
    } while marker != nil
    return parts
  }

  /// Joins the parts. The outcome of a failure is unknown: the object may exist.
  func complete(_ upload: String, _ key: String, _ parts: [S3Part]) async throws {
    let items = parts.map { part in
      let tag = part.tag.split(separator: "\"").joined()
      return "<Part><PartNumber>\(part.number)</PartNumber><ETag>&quot;\(tag)&quot;</ETag></Part>"
    }
    let body = "<CompleteMultipartUpload>\(items.joined())</CompleteMultipartUpload>"
    let request = S3Request(
      operation: "complete upload", method: .POST, key: key, query: [("uploadId", upload)],
      headers: [("content-type", "application/xml")], body: ByteBuffer(string: body))
    _ = try await answer(request)
  }

  func abort(_ upload: S3Upload) async throws {
    let request = S3Request(
      operation: "abort upload", method: .DELETE, key: upload.key, query: [("uploadId", upload.id)])
    do { _ = try await collect(request, upTo: 1 << 16) } catch let failure as S3Failure
      where failure.isMissingUpload || failure.isMissing
    {}
  }

  /// Calls `body` with all uploads below a prefix, in batches.
  func forEachUpload(_ prefix: String, _ body: ([S3Upload]) async throws -> Void) async throws {
    var marker: (key: String, id: String)?
    repeat {
      var query = [("uploads", ""), ("prefix", prefix)]
      if let marker { query += [("key-marker", marker.key), ("upload-id-marker", marker.id)] }
      let answer = try await answer(S3Request(operation: "list uploads", method: .GET, query: query))
      try await body(
        answer.all("Upload").compactMap { upload in
          guard let key = upload["Key"], let id = upload["UploadId"] else { return nil }
          return S3Upload(key: key, id: id, initiated: upload["Initiated"] ?? "")
        })
      let isMore = answer["IsTruncated"] == "true"
      marker = isMore ? (answer["NextKeyMarker"] ?? "", answer["NextUploadIdMarker"] ?? "") : nil
    } while marker != nil
  }

  /// Returns the uploads of one key, the oldest first.
  func uploads(of key: String) async throws -> [S3Upload] {
    var found: [S3Upload] = []
    try await forEachUpload(key) { found += $0 }
    return found.filter { $0.key == key }.sorted { ($0.initiated, $0.id) < ($1.initiated, $1.id) }
  }
}
