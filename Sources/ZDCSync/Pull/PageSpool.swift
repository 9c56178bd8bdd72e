internal import Foundation
internal import Synchronization
internal import ZDCSupport

#if canImport(Glibc)
  internal import Glibc
#elseif canImport(Musl)
  internal import Musl
#elseif canImport(Darwin)
  internal import Darwin
#endif

/// Pages of a log, kept in an unlinked file until they are read in one transaction, because a log may exceed available
/// memory. The file holds the pages as the server sent them; nothing in it is decrypted.
final class PageSpool: Sendable {
  private let descriptor: Int32
  private let lengths = Mutex<[Int]>([])

  package init() throws {
    let folder = FileManager.default.temporaryDirectory.path
    var template = Array("\(folder)/zdc-log-XXXXXX".utf8CString)
    descriptor = mkstemp(&template)
    guard descriptor >= 0 else { throw ZDCError(.fileFailure) }
    // Only the owner can read the file, and it disappears when the last descriptor is closed.
    unlink(&template)
  }

  deinit { close(descriptor) }

  package func append(_ page: [UInt8]) throws {
    var rest = page[...]
    while !rest.isEmpty {
      let written = rest.withUnsafeBytes { write(descriptor, $0.baseAddress, $0.count) }
      guard written > 0 else { throw ZDCError(errno == ENOSPC ? .diskFull : .fileFailure) }
      rest = rest.dropFirst(written)
    }
    lengths.withLock { $0.append(page.count) }
  }

  /// Reads the pages one at a time, in the order in which they were appended.
  package func readAll(_ body: ([UInt8]) throws -> Void) throws {
    var offset: off_t = 0
    for length in lengths.withLock({ $0 }) {
      try body(try read(at: offset, count: length))
      offset += off_t(length)
    }
  }

  private func read(at offset: off_t, count: Int) throws -> [UInt8] {
    var got = 0
    let bytes = [UInt8](unsafeUninitializedCapacity: count) { buffer, initialized in
      while got < count {
        let piece = pread(descriptor, buffer.baseAddress! + got, count - got, offset + off_t(got))
        guard piece > 0 else { break }
        got += piece
      }
      initialized = got
    }
    guard got == count else { throw ZDCError(.fileFailure) }
    return bytes
  }
}
