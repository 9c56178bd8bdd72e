/// A table of the form in which one store hands everything that it has to another.
///
/// Rows refer to each other by the numbers that the source gave them, and the target keeps these numbers. Two things are
/// left out. Each store computes its own positions in feeds; clients with a position of another store get their whole
/// list. Uploads that have not ended are lost, because an object store does not return single parts; clients begin them
/// again.
package enum StoredTable: String, Sendable, CaseIterable {
  case users, links
  case signKeys = "sign_keys"
  case invites, handles, devices, sessions, trees, zones, closing
  case lists = "acls"
  case grants, members, memberships, states, commits, blobs
  // After the commits and the contents that they name.
  case nodes
  case records, envelopes, senders

  package enum Kind: Sendable { case int, bytes }

  package struct Column: Sendable {
    package var name: String
    package var kind: Kind
  }

  /// The columns, those of the key first.
  package var columns: [Column] {
    let (key, others) = layout
    return (key + others).map { text in
      let isBytes = text.hasSuffix("*")
      return Column(name: isBytes ? String(text.dropLast()) : text, kind: isBytes ? .bytes : .int)
    }
  }

  /// The number of columns that identify a row. Rows are read and written in their order.
  package var keyCount: Int { layout.key.count }

  /// The number of rows that are read and written together: a few megabytes where rows are large.
  package var pageRows: Int {
    switch self {
    case .states: 8
    case .lists, .commits, .nodes, .blobs, .envelopes: 128
    default: 1_000
    }
  }

  // A star marks a column of bytes.
  private var layout: (key: [String], others: [String]) {
    switch self {
    case .users:
      (
        ["id"],
        [
          "user_id*", "lookup_id*", "login_key*", "genesis*", "link_seq", "link_head*", "sign_gen", "enc_gen",
          "closed_ms", "created_ms", "keyring*", "suspended_ms", "quota",
        ]
      )
    case .links: (["user", "seq"], ["bytes*"])
    case .signKeys: (["user", "gen"], ["key*"])
    case .invites: (["code_hash*"], ["used_ms"])
    case .handles: (["handle*"], ["user", "released_ms"])
    case .devices: (["user", "device_id*"], ["key*", "created_ms"])
    case .sessions: (["token_hash*"], ["user", "device_id*", "created_ms", "expires_ms"])
    case .trees: (["id"], ["tree_id*", "owner", "trunk", "app*"])
    case .zones:
      (
        ["id"],
        [
          "tree", "root*", "seq", "head*", "acl", "retired*", "closed_ms", "live_nodes", "records", "record_bytes",
          "log_bytes", "contents", "content_bytes",
        ]
      )
    case .closing: (["zone"], [])
    case .lists: (["id"], ["zone", "bytes*"])
    case .grants: (["zone", "user_id*", "hash*"], ["bytes*"])
    case .members: (["user_id*", "zone"], ["permissions", "joined_seq", "joined_ms", "left_seq"])
    case .memberships: (["user", "zone"], ["accepted_ms", "ended_seq"])
    case .states: (["zone", "part"], ["bytes*"])
    case .commits: (["zone", "seq"], ["hash*", "received_ms", "acl", "bytes*"])
    case .blobs:
      (
        ["id"],
        [
          "blob_id*", "zone", "node*", "length", "state", "owner", "root*", "touched_ms", "replaced_ms", "content*",
        ]
      )
    case .nodes:
      (
        ["id"],
        [
          "tree", "node*", "parent*", "tag*", "zone", "put_seq", "put", "key_gen", "parent_key_gen", "hash*",
          "received_ms", "data_received_ms", "record*", "blob", "content_id*", "content*",
        ]
      )
    case .records:
      (["id"], ["zone", "node*", "hash*", "received_ms", "data_received_ms", "replaced_ms", "bytes*"])
    case .envelopes:
      (["id"], ["inbox", "node*", "sender*", "message*", "length", "is_request", "received_ms", "bytes*"])
    case .senders: (["inbox", "user_id*"], ["state"])
    }
  }
}

/// A value of a ``StoredRow``.
package enum StoredValue: Sendable, Hashable {
  case null
  case int(Int64)
  case bytes([UInt8])

  package var int: Int64? { if case .int(let number) = self { number } else { nil } }
  package var bytes: [UInt8]? { if case .bytes(let bytes) = self { bytes } else { nil } }
}

/// A row of a ``StoredTable``, in the order of its columns.
package struct StoredRow: Sendable, Hashable {
  package var values: [StoredValue]

  package init(_ values: [StoredValue]) { self.values = values }

  package func key(in table: StoredTable) -> [StoredValue] { Array(values.prefix(table.keyCount)) }

  /// A form in which two different rows never look alike.
  package var encoded: [UInt8] {
    values.reduce(into: []) { out, value in
      switch value {
      case .null: out.append(0)
      case .int(let number): out += [1] + withUnsafeBytes(of: number.bigEndian) { Array($0) }
      case .bytes(let bytes): out += [2] + withUnsafeBytes(of: UInt64(bytes.count).bigEndian) { Array($0) } + bytes
      }
    }
  }
}
