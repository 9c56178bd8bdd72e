internal import Foundation
internal import ZDCProtocol
internal import ZDCServer

/// Checks content, and the files that have it.
struct ContentCheck {
  let pass: IntegrityCheck

  /// Checks every blob: small ones by their length, files by each leaf and the root.
  func checkBlobs() throws {
    let total = try pass.count(
      "SELECT (SELECT coalesce(sum(length), 0) FROM blobs) + (SELECT coalesce(sum(length(bytes)), 0) FROM contents)")
    try pass.db.each("SELECT count(*), coalesce(sum(length(bytes)), 0) FROM contents", []) { row in
      // Their bytes are compared with the records of their nodes.
      pass.report.blobs += row.unsigned(0)
      pass.report.contentBytes += row.unsigned(1)
      return true
    }
    try pass.db.each("SELECT id, length(content) FROM blobs ORDER BY id", []) { row in
      guard let blob = try pass.store.blob(row.int(0)) else { return true }
      pass.report.blobs += 1
      if blob.isInline {
        let isWhole = row.unsigned(1) == blob.cipherLength && blob.state == .attached
        if !isWhole { pass.add(.content, [.blob(blob.id)], "the small content has the wrong length") }
        pass.report.contentBytes += row.unsigned(1)
      } else if let blobFolder = pass.blobFolder {
        try checkFiles(of: blob, in: blobFolder, total: total)
      } else {
        pass.report.elsewhere += 1
      }
      pass.advance(.content, pass.report.contentBytes, of: total)
      return true
    }
  }

  private typealias Files = (content: OpenFile, leaves: OpenFile)

  private func checkFiles(of blob: BlobRow, in folder: String, total: UInt64) throws {
    var files: Files?
    if let content = try? OpenFile("\(folder)/\(blob.id.text).content", .read),
      let leaves = try? OpenFile("\(folder)/\(blob.id.text).leaves", .read)
    {
      files = (content, leaves)
    }
    if blob.state == .receiving { try checkUpload(blob, files) } else { try checkContent(blob, files, total: total) }
  }

  private func checkContent(_ blob: BlobRow, _ files: Files?, total: UInt64) throws {
    guard let files else { return pass.add(.blobFileMissing, [.blob(blob.id)], "the file is missing") }
    let leaves = ContentGeometry.leafCount(cipherLength: blob.cipherLength)
    let stored = try files.leaves.size()
    let hashes = HashFile(leafCount: leaves)
    guard try files.content.size() == blob.cipherLength, stored == hashes.leafBytes || stored == hashes.bytes else {
      return pass.add(.blobFile, [.blob(blob.id)], "the file has the wrong length")
    }
    var root = MerkleTree.Builder()
    var groups = GroupHashes()
    for leaf in 0..<leaves {
      let hash = try check(leaf, of: blob, files.content, files.leaves)
      root.append(leafHash: hash)
      groups.append(leafHash: hash)
      if leaf % 256 == 255 { pass.advance(.content, pass.report.contentBytes, of: total) }
    }
    if ContentRoot(reinterpreting: root.root) != blob.contentRoot {
      pass.add(.blobFile, [.blob(blob.id)], "the file does not match its root hash")
    }
    let above = groups.levels.flatMap { $0 }
    if stored == hashes.bytes, try files.leaves.read(at: hashes.leafBytes, count: above.count) != above {
      pass.add(.blobFile, [.blob(blob.id)], "the stored hashes of groups do not match the leaves")
    }
  }

  /// Checks a leaf against its stored hash; returns the hash computed from its bytes.
  private func check(_ leaf: UInt64, of blob: BlobRow, _ content: OpenFile, _ leaves: OpenFile) throws -> MerkleHash {
    let range = ContentGeometry.leafRange(leaf, cipherLength: blob.cipherLength)
    let bytes = try content.read(at: range.lowerBound, count: range.count)
    pass.report.contentBytes += UInt64(bytes.count)
    var hasher = MerkleTree.LeafHasher()
    bytes.withUnsafeBytes { hasher.update(bufferPointer: $0) }
    let hash = hasher.finalize()
    if try leaves.read(at: leaf * 32, count: 32) != hash.bytes {
      pass.add(.blobFile, [.blob(blob.id), .number("leaf", leaf)], "the bytes do not match the stored leaf hash")
    }
    return hash
  }

  /// Checks that the acknowledged parts are present, with their bytes.
  private func checkUpload(_ blob: BlobRow, _ files: Files?) throws {
    let parts = try pass.store.parts(of: blob)
    guard !parts.isEmpty else { return }
    guard let files else {
      return pass.add(.blobFileMissing, [.blob(blob.id)], "the file of a running upload is missing")
    }
    let perPart = ContentGeometry.leavesPerPart(cipherLength: blob.cipherLength)
    let leaves = ContentGeometry.leafCount(cipherLength: blob.cipherLength)
    for part in parts {
      let fields: [CheckFinding.Field] = [.blob(blob.id), .number("part", part.index)]
      guard part.index >= 0, part.index < ContentGeometry.partCount(cipherLength: blob.cipherLength) else {
        pass.add(.upload, fields, "the content has no such part")
        continue
      }
      var hashes: [UInt8] = []
      let first = UInt64(part.index) * perPart
      do {
        for leaf in first..<min(first + perPart, leaves) {
          hashes += try check(leaf, of: blob, files.content, files.leaves).bytes
        }
      } catch StoreError.damaged {
        pass.add(.upload, fields, "bytes of an acknowledged part are missing")
        continue
      }
      if MerkleTree.partHash(leafHashes: hashes) != part.hash.bytes {
        pass.add(.upload, fields, "the part does not match its hash")
      }
    }
  }

  /// Checks for files without a row. A killed server leaves them, and its next collection removes them.
  func checkFiles() throws {
    pass.advance(.files, 0, of: 0)
    guard let blobFolder = pass.blobFolder, let names = FileManager.default.enumerator(atPath: blobFolder) else {
      return
    }
    for case let name as String in names where name != FolderBlobStore.roomFile {
      let parts = name.split(separator: ".", omittingEmptySubsequences: false)
      let isOurs = parts.count == 2 && ["content", "leaves"].contains(parts[1])
      guard isOurs, let id = BlobID(text: parts[0]) else {
        pass.add(.orphanFile, [], "an unknown file in the blob folder")
        continue
      }
      guard try pass.store.file(id) == nil else { continue }
      pass.add(.orphanFile, [.blob(id)], "a file that no content uses")
    }
  }
}
