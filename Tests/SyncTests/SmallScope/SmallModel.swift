import ZeroDarkCloud

/// The outcome for a small tree by the table of outcomes of PROTOCOL 3.7, computed from the table and not from the
/// code.
///
/// The model's app drops its changes below a node that was deleted elsewhere, and merges two versions of content line
/// by line. Several rows of the table may meet in one node without saying which comes first. Then ``isUndecided`` is
/// set, and the devices must agree even so.
struct SmallModel: Sendable {
  struct Node: Hashable, Sendable {
    var parent: SmallNode
    var name: String
    var lines: Set<String>
    /// The commits that last changed the name or parent, and the content.
    var placedBy = 0
    var editedBy = 0
  }

  typealias Tree = [SmallNode: Node]

  struct Replica: Sendable {
    /// The cloud's tree at the last pull or push.
    var base: Tree
    /// The tree that the app sees, with its queued changes.
    var view: Tree
    var created: [SmallNode] = []
    var placed: [SmallNode] = []
    /// Edited nodes, with the commit of the content that the first edit was based on.
    var edited: [SmallNode: Int] = [:]
    /// Deleted nodes that the cloud still has: only the tops that the app named.
    var deleted: [SmallNode] = []

    var isQueued: Bool { !created.isEmpty || !placed.isEmpty || !edited.isEmpty || !deleted.isEmpty }
  }

  private(set) var cloud: Tree
  private(set) var replicas: [Replica]
  var isUndecided = false
  /// Nodes that an app deleted with a folder that holds them only on its device. The table does not say whether they
  /// are deleted.
  private(set) var uncertain: Set<SmallNode> = []
  /// Texts that a deletion or a later edit removed knowingly.
  private(set) var superseded: Set<String> = []
  /// The entries that the journals must have: one for each change that a conflict removed.
  private(set) var journal: Set<SmallLine> = []
  private var head = 0

  init() {
    var tree: Tree = [:]
    for (node, parent) in SmallNode.atStart {
      tree[node] = Node(parent: parent, name: "\(node)", lines: ["\(node)"])
    }
    cloud = tree
    replicas = [Replica(base: tree, view: tree), Replica(base: tree, view: tree)]
  }

  /// The sorted lines of each node, by path.
  var files: [String: String] {
    Dictionary(uniqueKeysWithValues: cloud.keys.map { (cloud.path($0), cloud[$0]?.text ?? "") })
  }

  // MARK: The app

  /// - Returns: False if the app cannot do that: the node or the place does not exist, or the name is taken.
  mutating func change(_ operation: SmallOperation, number: Int, by device: Int) -> Bool {
    var replica = replicas[device]
    guard replica.allows(operation) else { return false }
    let text = "o\(number)"
    switch operation {
    case .edit(let node):
      superseded.formUnion(replica.view[node]?.lines ?? [])
      replica.view[node]?.lines = [text]
      // A node that was never sent is created with its newest content, so no edit of it can conflict.
      if !replica.created.contains(node), replica.edited[node] == nil {
        replica.edited[node] = replica.base[node]?.editedBy ?? 0
      }
    case .create(let parent): replica.create(.made(number), "x", below: parent, text)
    case .rename(let node):
      replica.view[node]?.name = "x"
      replica.place(node)
    case .move(let node, let parent):
      replica.view[node]?.parent = parent
      replica.place(node)
    case .delete(let node): delete(node, &replica)
    case .replace(let node):
      guard let old = replica.view[node] else { return false }
      delete(node, &replica)
      replica.create(.made(number), old.name, below: old.parent, text)
    }
    replicas[device] = replica
    return true
  }

  private mutating func delete(_ top: SmallNode, _ replica: inout Replica) {
    let gone = replica.view.subtree(top)
    for node in gone {
      superseded.formUnion(replica.view[node]?.lines ?? [])
      // Moved in, and not sent yet. The table does not say whether the deletion covers a node with another place in the
      // cloud.
      if replica.placed.contains(node), replica.base[node] != nil, node != top {
        isUndecided = true
        uncertain.formUnion(gone)
      }
      replica.forget(node)
    }
    if replica.base[top] != nil { replica.deleted.append(top) }
    if replica.base[top] == nil, gone.contains(where: { replica.base[$0] != nil }) { isUndecided = true }
  }

  // MARK: The network

  mutating func push(_ device: Int) {
    pull(device)
    guard replicas[device].isQueued else { return }
    merge(by: device)
    head += 1
    var tree = replicas[device].view
    for node in replicas[device].created + replicas[device].placed
    where cloud[node].map({ !tree.isPlaced(node, like: $0) }) ?? true {
      tree[node]?.placedBy = head
    }
    for node in replicas[device].created + replicas[device].edited.keys { tree[node]?.editedBy = head }
    for node in cloud.keys where tree[node] == nil { superseded.formUnion(cloud[node]?.lines ?? []) }
    cloud = tree
    replicas[device] = Replica(base: tree, view: tree)
  }

  mutating func pull(_ device: Int) {
    let old = replicas[device]
    guard old.base != cloud else { return }
    var new = Replica(base: cloud, view: cloud)
    keepCreated(old, &new, by: device)
    keepPlaced(old, &new, by: device)
    keepEdited(old, &new, by: device)
    keepDeleted(old, &new, by: device)
    giveWay(old, &new, by: device)
    replicas[device] = new
    for node in uncertain { uncertain.formUnion(cloud.subtree(node)) }
  }

  /// "create, edit or move at or below a deleted node: the app decides": this app drops it.
  private mutating func keepCreated(_ old: Replica, _ new: inout Replica, by device: Int) {
    for node in old.created {
      guard let mine = old.view[node] else { continue }
      guard mine.parent == .top || new.view[mine.parent] != nil else {
        superseded.formUnion(mine.lines)
        noteDeleted(node, old, by: device)
        continue
      }
      new.view[node] = mine
      new.created.append(node)
    }
  }

  /// "the committed one wins, the local one is dropped"; "a move that would make a cycle, or into a deleted node:
  /// dropped".
  private mutating func keepPlaced(_ old: Replica, _ new: inout Replica, by device: Int) {
    var kept: [SmallNode] = []
    for node in old.placed {
      guard let mine = old.view[node] else { continue }
      guard let theirs = cloud[node] else {
        // The move may have been dropped first, because the target was deleted before the node.
        noteDeleted(node, old, by: device, orElse: [.moveDropped])
        continue
      }
      // Moved there and back: a device that reads both commits in one page sees no move.
      if let base = old.base[node], theirs.placedBy != base.placedBy, cloud.isPlaced(node, like: base) {
        isUndecided = true
      }
      guard theirs.placedBy == old.base[node]?.placedBy, mine.parent == .top || new.view[mine.parent] != nil else {
        noteDropped(node, mine, theirs, by: device)
        // The table does not say which of the two gives way.
        if old.created.contains(where: { new.view.isPlaced($0, like: theirs) }) { isUndecided = true }
        continue
      }
      new.view.place(node, like: mine)
      kept.append(node)
    }
    // A node that returns to its place may put another moved one into a ring.
    while case let ringed = kept.filter({ new.view.isInRing($0) }), !ringed.isEmpty {
      if ringed.count > 1 { isUndecided = true }
      for node in ringed {
        guard let mine = old.view[node], let theirs = cloud[node] else { continue }
        new.view.place(node, like: theirs)
        noteDropped(node, mine, theirs, by: device)
      }
      kept.removeAll { ringed.contains($0) }
    }
    new.placed = kept
  }

  /// "data / data: a conflict of data, decided by the app": this app keeps the lines of both. It is asked when its edit
  /// is sent.
  private mutating func merge(by device: Int) {
    for (node, base) in replicas[device].edited {
      guard let theirs = cloud[node], theirs.editedBy != base else { continue }
      replicas[device].view[node]?.lines.formUnion(theirs.lines)
      journal.insert(SmallLine(device: device, kind: .merged, nodes: [node]))
    }
  }

  private mutating func keepEdited(_ old: Replica, _ new: inout Replica, by device: Int) {
    for (node, base) in old.edited {
      guard let mine = old.view[node] else { continue }
      guard cloud[node] != nil else {
        superseded.formUnion(mine.lines)
        noteDeleted(node, old, by: device)
        continue
      }
      new.view[node]?.lines = mine.lines
      new.edited[node] = base
    }
  }

  /// "the delete wins, with a new count"; "remote move of N into it since: N is moved to the deleted node's parent
  /// first". "delete of two branches / remote move of N from one into the other: deleted".
  private mutating func keepDeleted(_ old: Replica, _ new: inout Replica, by device: Int) {
    for top in old.deleted {
      guard let place = new.view[top] else {
        // It went with another deleted folder, and stays deleted if others move that one out.
        if cloud[top] != nil { new.deleted.append(top) }
        continue
      }
      // The app did not see it in the deleted branch, or its folder was taken out of it.
      let isNewcomer = { node in old.base[node] != nil && old.view[node] != nil }
      let moved = cloud.subtree(top).filter { node in
        new.view.isNode(node, atOrBelow: top) && isNewcomer(node)
          && !cloud.ancestry(node).dropFirst().prefix { $0 != top }.contains(where: isNewcomer)
      }
      for node in moved {
        if old.placed.contains(node) { isUndecided = true }
        new.view[node]?.parent = place.parent
        if !new.placed.contains(node) { new.placed.append(node) }
      }
      for node in new.view.subtree(top) {
        // Moved out here, and put back by a commit: the table has no row for that.
        if old.placed.contains(node), old.view[node] != nil { isUndecided = true }
        superseded.formUnion(new.view[node]?.lines ?? [])
        if let theirs = cloud[node], !theirs.isSameVersion(as: old.base[node]) {
          journal.insert(SmallLine(device: device, kind: .deletedHere, nodes: [node]))
        }
        new.forget(node)
      }
      new.deleted.append(top)
    }
  }

  /// "the later one becomes N 2".
  private mutating func giveWay(_ old: Replica, _ new: inout Replica, by device: Int) {
    for node in new.created + new.placed {
      guard let mine = new.view[node] else { continue }
      let local = Set(new.created + new.placed)
      let later = new.created + new.placed
      let taken = new.view.filter { other, value in
        guard other != node, value.parent == mine.parent else { return false }
        return !local.contains(other)
          || (later.firstIndex(of: other) ?? 0) < (later.firstIndex(of: node) ?? 0)
      }.map(\.value.name)
      guard taken.contains(mine.name) else { continue }
      var number = 2
      while taken.contains("\(mine.name) \(number)") { number += 1 }
      new.view[node]?.name = "\(mine.name) \(number)"
      // A place that the framework chose does not show what an app wanted.
      if old.created.contains(node) || old.placed.contains(node) {
        journal.insert(SmallLine(device: device, kind: .renamed, nodes: [node], name: mine.name))
      }
    }
  }

  // MARK: The journal

  /// Records a deletion in the cloud. The top of the deleted branch is the node or one of its ancestors, here or there.
  private mutating func noteDeleted(
    _ node: SmallNode, _ old: Replica, by device: Int, orElse others: Set<ZDCMergeJournalEntry.Kind> = []
  ) {
    let above = old.view.ancestry(node) + old.base.ancestry(node)
    journal.insert(SmallLine(device: device, kind: .deletedInCloud, orElse: others, nodes: Set(above)))
  }

  private mutating func noteDropped(_ node: SmallNode, _ mine: Node, _ theirs: Node, by device: Int) {
    guard (mine.parent, mine.name) != (theirs.parent, theirs.name) else { return }
    journal.insert(SmallLine(device: device, kind: .moveDropped, nodes: [node]))
  }
}

extension SmallModel.Replica {
  fileprivate func allows(_ operation: SmallOperation) -> Bool {
    switch operation {
    case .edit(let node), .delete(let node), .replace(let node): view[node] != nil
    case .create(let parent): isThere(parent) && isFree("x", below: parent)
    case .rename(let node): view[node].map { isFree("x", below: $0.parent) } ?? false
    case .move(let node, let parent):
      view[node].map { $0.parent != parent && isFree($0.name, below: parent) } ?? false
        && isThere(parent) && !view.isNode(parent, atOrBelow: node)
    }
  }

  private func isThere(_ node: SmallNode) -> Bool { node == .top || view[node] != nil }

  private func isFree(_ name: String, below parent: SmallNode) -> Bool {
    !view.values.contains { $0.parent == parent && $0.name == name }
  }

  fileprivate mutating func create(_ node: SmallNode, _ name: String, below parent: SmallNode, _ text: String) {
    view[node] = SmallModel.Node(parent: parent, name: name, lines: [text])
    created.append(node)
  }

  fileprivate mutating func place(_ node: SmallNode) {
    if !created.contains(node), !placed.contains(node) { placed.append(node) }
  }

  fileprivate mutating func forget(_ node: SmallNode) {
    view[node] = nil
    created.removeAll { $0 == node }
    placed.removeAll { $0 == node }
    edited[node] = nil
    deleted.removeAll { $0 == node }
  }
}

extension SmallModel.Node {
  fileprivate func isSameVersion(as other: SmallModel.Node?) -> Bool {
    placedBy == other?.placedBy && editedBy == other?.editedBy
  }

  fileprivate var text: String { lines.sorted().joined(separator: "\n") }
}

extension SmallModel.Tree {
  fileprivate mutating func place(_ node: SmallNode, like other: SmallModel.Node) {
    self[node]?.parent = other.parent
    self[node]?.name = other.name
  }

  fileprivate func isPlaced(_ node: SmallNode, like other: SmallModel.Node) -> Bool {
    self[node].map { ($0.parent, $0.name) == (other.parent, other.name) } ?? false
  }

  fileprivate func path(_ node: SmallNode) -> String {
    guard let value = self[node] else { return "" }
    return path(value.parent) + "/" + value.name
  }

  fileprivate func ancestry(_ node: SmallNode) -> [SmallNode] {
    var nodes: [SmallNode] = []
    var next: SmallNode? = node
    while let current = next, current != .top, !nodes.contains(current) {
      nodes.append(current)
      next = self[current]?.parent
    }
    return nodes
  }

  fileprivate func isNode(_ node: SmallNode, atOrBelow top: SmallNode) -> Bool { ancestry(node).contains(top) }

  fileprivate func isInRing(_ node: SmallNode) -> Bool {
    var next = self[node]?.parent
    for _ in 0..<(count + 1) {
      guard let current = next, current != .top else { return false }
      if current == node { return true }
      next = self[current]?.parent
    }
    return false
  }

  fileprivate func subtree(_ top: SmallNode) -> [SmallNode] {
    keys.filter { isNode($0, atOrBelow: top) }.sorted()
  }
}
