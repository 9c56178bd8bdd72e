internal import ZDCClientStore

/// Imported files whose nodes have yet to be inserted. Checks whether there are any once per transaction, not once per
/// node.
package final class UninsertedFiles: TransactionCache {
  private let store: DiskFileStore
  /// nil if not known yet.
  var mayExist: Bool?

  package init(_ store: DiskFileStore) { self.store = store }

  package func attach(toNode uuid: String) throws {
    let exist = try mayExist ?? store.hasUninserted()
    mayExist = exist
    if exist { try store.attach(toNode: uuid) }
  }

  package func invalidate() { mayExist = nil }
}

extension ZDCReadWriteTransaction {
  package var uninsertedFiles: UninsertedFiles { cached { UninsertedFiles(diskFiles) } }
}
