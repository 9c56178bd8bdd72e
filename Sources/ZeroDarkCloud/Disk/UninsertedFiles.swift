/// Imported files whose nodes have yet to be inserted. Whether there are any is read once for each transaction and not
/// for each node.
final class UninsertedFiles: Forgetful {
  private let store: DiskFileStore
  /// nil: not known yet.
  var mayExist: Bool?

  init(_ store: DiskFileStore) { self.store = store }

  func attach(toNode uuid: String) throws {
    let exist = try mayExist ?? store.hasUninserted()
    mayExist = exist
    if exist { try store.attach(toNode: uuid) }
  }

  func forgetAll() { mayExist = nil }
}

extension ZDCReadWriteTransaction {
  var uninsertedFiles: UninsertedFiles { cached { UninsertedFiles(diskFiles) } }
}
