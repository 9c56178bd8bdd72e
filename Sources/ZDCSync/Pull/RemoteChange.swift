package import ZDCClientStore
package import ZDCCrypto
internal import ZDCProtocol

/// The changes in a new version of a record, compared with the previously known version in the cloud. Pure.
package struct RemoteChange: Equatable {
  package var moved: Bool
  package var data: Bool
  /// Whether something else in the record changed: access, burn date, key.
  package var record: Bool

  package init(before: NodeRow, after: OpenedRecord) {
    let fields = after.record.fields
    guard let cloud = before.cloud else {
      // This is the node's own first upload, seen before its answer arrived: nothing changed for the app.
      self.init(moved: false, data: false, record: false)
      return
    }
    // Tags also change with the parent's key.
    let moved = cloud.parent != fields.parent || cloud.name != after.secrets.name
    let data = before.content?.content.blobID != fields.content?.blobID
    // One version may contain both changes; the app is notified of each. Who sends a message, and who was served, is no
    // change for the app.
    let record =
      data || !after.secrets.recipients.isEmpty
      ? cloud.burnMs != fields.burnMs || before.keyGen != fields.keyGen : cloud.recordHash != after.record.hash
    self.init(moved: moved, data: data, record: !moved && record)
  }

  package init(moved: Bool, data: Bool, record: Bool) {
    self.moved = moved
    self.data = data
    self.record = record
  }
}
