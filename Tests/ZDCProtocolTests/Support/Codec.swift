import Testing
import ZDCProtocol

/// A format: creates bytes that decode, and encodes decoded values again.
struct Codec: Sendable, CustomTestStringConvertible {
  let testDescription: String
  let sample: @Sendable (inout SeededGenerator) -> [UInt8]
  /// Decodes, then encodes the decoded *fields*; ignores the received bytes that objects keep.
  let recode: @Sendable ([UInt8]) throws -> [UInt8]

  static let all = [
    Codec(testDescription: "IdentityLink", sample: Samples.link, recode: recodeLink),
    Codec(
      testDescription: "NodeRecord", sample: { Samples.record(&$0, allFields: true).bytes },
      recode: { NodeRecord(try NodeRecord($0).fields).bytes }),
    Codec(
      testDescription: "NodeRecord with drawn fields", sample: { Samples.record(&$0, allFields: false).bytes },
      recode: { NodeRecord(try NodeRecord($0).fields).bytes }),
    Codec(
      testDescription: "ZoneCommit",
      sample: { generator in
        let signature = generator.bytes(64)
        return ZoneCommit(Samples.commit(&generator), sign: { _ in signature }).bytes
      },
      recode: { bytes in
        let commit = try ZoneCommit(bytes)
        return ZoneCommit(commit.fields, sign: { _ in commit.signature }).bytes
      }),
    Codec(
      testDescription: "ZoneACL",
      sample: { generator in
        let signature = generator.bytes(64)
        return ZoneACL(Samples.acl(&generator), sign: { _ in signature }).bytes
      },
      recode: { bytes in
        let acl = try ZoneACL(bytes)
        return ZoneACL(acl.fields, sign: { _ in acl.signature }).bytes
      }),
    Codec(testDescription: "Grant", sample: { Samples.grant(&$0).bytes }, recode: recodeGrant),
    Codec(
      testDescription: "StateList", sample: { Samples.stateList(&$0).bytes }, recode: { try StateList($0).bytes }),
    Codec(
      testDescription: "ZoneACLEdit", sample: { Samples.aclEdit(&$0).bytes }, recode: { try ZoneACLEdit($0).bytes }),
    Codec(testDescription: "Bundle", sample: Samples.bundle, recode: recodeBundle),
  ]

  /// Whether the format begins with a magic and a version.
  var hasPreamble: Bool { !["Bundle", "StateList", "ZoneACLEdit"].contains(testDescription) }

  /// The number of prefixes of a sample that are valid: a bundle is cut in front of each of its seven items, a state
  /// list behind each of its five nodes but the last.
  var validPrefixes: Int {
    switch testDescription {
    case "Bundle": 7
    case "StateList": 4
    default: 0
    }
  }

  @Sendable private static func recodeLink(_ bytes: [UInt8]) throws -> [UInt8] {
    let link = try IdentityLink(bytes)
    var fields = IdentityLink.Fields(
      kind: link.kind, timeMs: link.timeMs, rootPub: link.rootPub, signPub: link.signPub, encPub: link.encPub)
    fields.seq = link.seq
    fields.prev = link.prev
    fields.userID = link.statedUserID
    fields.signGen = link.signGen
    fields.encGen = link.encGen
    fields.compromise = link.compromise
    fields.keyringVersion = link.keyringVersion
    fields.keyringHash = link.keyringHash
    fields.claims = link.claims
    return fields.unsignedBytes + link.sigRoot + link.sigNewRoot + link.sigSign
  }

  @Sendable private static func recodeGrant(_ bytes: [UInt8]) throws -> [UInt8] {
    let grant = try Grant(bytes)
    return Grant(zone: grant.zone, zoneKeyGen: grant.zoneKeyGen, user: grant.user, wrap: grant.wrap).bytes
  }

  @Sendable static func recodeBundle(_ bytes: [UInt8]) throws -> [UInt8] {
    var reader = Bundle.Reader(bytes)
    return try reader.all().flatMap { item in
      var writer = Bundle.Writer()
      switch item {
      case .commit(let ms, let commit): writer.append(commit: commit.bytes, receivedMs: ms)
      case .record(let recordMs, let dataMs, let record):
        writer.append(record: record.bytes, recordReceivedMs: recordMs, dataReceivedMs: dataMs)
      case .acl(let acl): writer.append(acl: acl.bytes)
      case .grant(let grant): writer.append(grant: grant.bytes)
      case .content(let blob, let bytes): writer.append(content: bytes, blob: blob)
      case .link(let link): writer.append(link: link.bytes)
      case .leaves(let hashes): return rawItem(.leaves, Array(hashes))
      case .aclEdit(let edit): writer.append(aclEdit: edit)
      case .attach(let content): writer.append(attach: content)
      case .envelope(let envelope): writer.append(envelope: envelope.bytes)
      }
      return writer.bytes
    }
  }

  static func rawItem(_ type: Bundle.ItemType, _ bytes: [UInt8]) -> [UInt8] {
    var writer = ByteWriter()
    writer.append(type.rawValue)
    writer.append32(bytes)
    return writer.bytes
  }
}
