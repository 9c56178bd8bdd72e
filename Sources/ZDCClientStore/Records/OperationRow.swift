package import ZDCProtocol

/// One intent in the queue. The record to send is made from the node's row when the operation is sent.
package struct OperationRow: Sendable, Hashable {
  package enum Kind: Int64, Sendable, CaseIterable {
    case create = 1
    /// Rename or move: name and parent as the node's row has them.
    case move = 2
    /// Another version of the record, place unchanged.
    case modify = 3
    case putData = 4
    case delete = 5
    /// A change of the zone's access list. The node is the zone's root.
    case changeList = 6
    /// The delivery of a message to one recipient. The node is the message in the outbox. Without one, a message is burned,
    /// which `changeset` names, or the user's profile is delivered.
    case deliver = 7
    /// Another version of the user's profile, which `changeset` has. It has no node, because apps do not see that one.
    case putProfile = 8
  }

  package enum State: Int64, Sendable, CaseIterable {
    case pending = 0
    /// Its content is being fetched from the app, sealed or sent in parts. Pending again after a relaunch.
    case uploading = 1
    /// Part of the request in zdc_in_flight.
    case inFlight = 2
  }

  /// Why an operation waits; kept with every change of state, so that "why is my change stuck?" has an answer.
  package enum Reason: Int64, Sendable, CaseIterable {
    case ready = 0
    case waitingForOperation = 1
    case backoff = 2
    case offline = 3
    case notPulledYet = 4
    case paused = 5
    case noDataFromApp = 6
    case promisePending = 7
    case conflictHeld = 8
    /// The node was deleted in the cloud while this was queued; the app re-queues it or deletes the node.
    case deletedRemotely = 9
    case overQuota = 10
    case serverSaid = 11
    case zoneFrozen = 12
    case uploading = 13
    case inFlight = 14
    /// The node's newest version, or its tree's key, cannot be read here, or may not be written over.
    case unreadable = 15
    /// A number in the node's record cannot rise any more.
    case exhausted = 16
    /// The access list in force does not allow it.
    case notAllowed = 17
  }

  /// The queue's order; 0 until the row is inserted.
  package var id: Int64 = 0
  package let uuid: String
  package var zone: Int64
  package var kind: Kind
  /// The node's row; nil for a delete.
  package var node: Int64?
  package var nodeUUID: String
  package var nodeID: NodeID
  package var state: State = .pending
  package var reason: Reason = .ready
  /// A code for people, never a name: the server's error code, another operation's uuid.
  package var reasonDetail: String?
  package var attempts: Int = 0
  package var notBeforeMs: UInt64 = 0
  package var priority: Int32 = 0
  /// putData: the content's eTag that the edit was based on or merged with; nil for none.
  package var baseETag: String?
  /// putData: the app's changeset, encoded. putProfile: the profile. deliver: the ID of the message to burn, or
  /// of a message that this device has taken over, the device that sent it before. delete: the node's name in the cloud; nil
  /// if this device did not know it. Sealed in the table.
  package var changeset: [UInt8]?
  package var createdMs: UInt64
  /// The version of the record, or of the content, that the server has lost; nil for what the app queued.
  package var resend: UInt64?
  /// Whether it makes earlier content, which the server still has, the newest one.
  package var isRestoration: Bool { kind == .modify && resend != nil }
  /// Whether its record may name content that the server has for this node only: of an earlier version, of a deleted node,
  /// or from before the server lost the record.
  package var namesOldContent: Bool { kind != .putData && resend != nil }
  /// changeList: the wanted state.
  package var listChange: ListChange?
  /// deliver: the user who gets the message.
  package var recipient: UserID?

  package init(
    id: Int64 = 0, uuid: String, zone: Int64, kind: Kind, node: Int64? = nil, nodeUUID: String, nodeID: NodeID,
    state: State = .pending, reason: Reason = .ready, reasonDetail: String? = nil, attempts: Int = 0,
    notBeforeMs: UInt64 = 0, priority: Int32 = 0, baseETag: String? = nil, changeset: [UInt8]? = nil, createdMs: UInt64,
    resend: UInt64? = nil, listChange: ListChange? = nil
  ) {
    self.id = id
    self.uuid = uuid
    self.zone = zone
    self.kind = kind
    self.node = node
    self.nodeUUID = nodeUUID
    self.nodeID = nodeID
    self.state = state
    self.reason = reason
    self.reasonDetail = reasonDetail
    self.attempts = attempts
    self.notBeforeMs = notBeforeMs
    self.priority = priority
    self.baseETag = baseETag
    self.changeset = changeset
    self.createdMs = createdMs
    self.resend = resend
    self.listChange = listChange
  }

  /// Whether it goes into the commits that are made of the queue.
  package var isInCommit: Bool { kind != .deliver && kind != .putProfile }
  /// Whether it delivers the user's profile.
  package var isProfileDelivery: Bool { kind == .deliver && node == nil && changeset == nil }
  /// Whether another device of the user may have delivered the message.
  package var isTakenOver: Bool { kind == .deliver && node != nil && changeset != nil }
  /// Whether it asks a recipient's devices to delete a message.
  package var isBurn: Bool { kind == .deliver && node == nil && changeset != nil }

  /// Whether the operation is unchanged since it was queued and carries no data.
  package var isFresh: Bool {
    state == .pending && reason == .ready && reasonDetail == nil && attempts == 0 && notBeforeMs == 0
      && priority == 0 && baseETag == nil && changeset == nil && resend == nil && listChange == nil && recipient == nil
  }

  /// Whether the server's last word was that another node has the name.
  package var isNameTaken: Bool {
    reason == .serverSaid && reasonDetail == ZDCSecurityError.Code.duplicateName.rawValue
  }

  /// Parked: nothing happens until the app or a pull changes something.
  package var isParked: Bool {
    switch reason {
    case .noDataFromApp, .conflictHeld, .deletedRemotely, .zoneFrozen, .unreadable, .exhausted, .notAllowed: true
    default: false
    }
  }
}
