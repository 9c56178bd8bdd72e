package import ZDCProtocol

/// A user's signature and decryption seeds of all generations (PROTOCOL 3.1). It is sealed under a key derived from the
/// access key.
package struct Keyring: Sendable, Equatable {
  package enum Kind: UInt8, Sendable {
    case sign = 1
    case encrypt = 2
  }

  package enum Status: UInt8, Sendable {
    case current = 1
    case retired = 2
    case compromised = 3
  }

  package struct Entry: Sendable, Equatable {
    package var kind: Kind
    package var gen: UInt32
    package var status: Status
    package var createdMs: UInt64
    var seed: [UInt8]

    package init(signing key: SigningKey, gen: UInt32, status: Status, createdMs: UInt64) {
      self.init(kind: .sign, gen: gen, status: status, createdMs: createdMs, seed: key.seed.exportBytes())
    }

    package init(decryption key: DecryptionKey, gen: UInt32, status: Status, createdMs: UInt64) {
      self.init(kind: .encrypt, gen: gen, status: status, createdMs: createdMs, seed: key.seed.exportBytes())
    }

    fileprivate init(kind: Kind, gen: UInt32, status: Status, createdMs: UInt64, seed: [UInt8]) {
      self.kind = kind
      self.gen = gen
      self.status = status
      self.createdMs = createdMs
      self.seed = seed
    }
  }

  package var version: UInt64
  package var user: UserID
  /// Sorted by kind and generation, with one current entry of each kind.
  package var entries: [Entry]

  package init(version: UInt64, user: UserID, entries: [Entry]) {
    self.version = version
    self.user = user
    self.entries = entries
  }

  /// Returns the signature key of a generation; nil if it was deleted or never existed.
  package func signingKey(gen: UInt32) -> SigningKey? {
    seed(.sign, gen).flatMap { SigningSeed($0) }.map(SigningKey.init(seed:))
  }

  /// Returns the decryption key of a generation. Old keys are kept, to open old grants.
  package func decryptionKey(gen: UInt32) throws(CryptoFailure) -> DecryptionKey? {
    guard let seed = seed(.encrypt, gen).flatMap({ DecryptionSeed($0) }) else { return nil }
    return try DecryptionKey(seed: seed)
  }

  private func seed(_ kind: Kind, _ gen: UInt32) -> [UInt8]? {
    entries.first { $0.kind == kind && $0.gen == gen }?.seed
  }

  private static let padding = 512

  /// The padded plaintext.
  package var bytes: [UInt8] {
    var out = ByteWriter(magic: "ZDKR", capacity: 1_024)
    out.append(version)
    out.append(user)
    out.append(UInt16(entries.count))
    for entry in entries { entry.write(to: &out) }
    let fill = (Self.padding - out.bytes.count % Self.padding) % Self.padding
    out.append(zeros: fill)
    return out.bytes
  }

  package init(_ bytes: [UInt8]) throws(ZDCSecurityError) {
    try require(bytes.count <= Limits.keyringBytes, .limitExceeded)
    try require(bytes.count % Self.padding == 0, .nonCanonicalEncoding)
    var reader = ByteReader(bytes)
    try reader.readPreamble(magic: "ZDKR")
    version = try reader.readUInt64()
    user = try reader.read32()
    entries = []
    for _ in 0..<(try reader.readUInt16()) { entries.append(try Entry(&reader)) }
    try checkEntries()
    let rest = reader.remaining
    let isPadding = try reader.read(count: rest).allSatisfy { $0 == 0 }
    try require(isPadding && rest < Self.padding, .nonCanonicalEncoding)
  }

  private func checkEntries() throws(ZDCSecurityError) {
    let keys = entries.map { ($0.kind.rawValue, $0.gen) }
    let isSorted = zip(keys, keys.dropFirst()).allSatisfy { $0 < $1 }
    let currents = entries.filter { $0.status == .current }.map(\.kind)
    try require(isSorted && currents == [.sign, .encrypt], .nonCanonicalEncoding)
  }
}

extension Keyring.Entry {
  fileprivate init(_ reader: inout ByteReader) throws(ZDCSecurityError) {
    let kind = Keyring.Kind(rawValue: try reader.readUInt8())
    gen = try reader.readUInt32()
    let status = Keyring.Status(rawValue: try reader.readUInt8())
    createdMs = try reader.readUInt64()
    seed = Array(try reader.read(count: 32))
    guard let kind, let status, gen > 0 else { throw ZDCSecurityError(.nonCanonicalEncoding) }
    self.kind = kind
    self.status = status
  }

  fileprivate func write(to out: inout ByteWriter) {
    out.append(kind.rawValue)
    out.append(gen)
    out.append(status.rawValue)
    out.append(createdMs)
    out.append(contentsOf: seed)
  }
}

extension Keyring.Entry: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
  package var description: String { "<keyring entry>" }
  package var debugDescription: String { description }
  package var customMirror: Mirror { Mirror(self, children: []) }
}

extension Keyring: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
  package var description: String { "<keyring \(version)>" }
  package var debugDescription: String { description }
  package var customMirror: Mirror { Mirror(self, children: []) }
}
