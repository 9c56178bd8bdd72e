import Testing
import ZeroDarkCloud
import ZeroDarkCloudTesting

/// One case of the convergence table: the changes of two devices to the same start, the order in which they reach the
/// server, and the outcome.
struct ConvergenceRow: Sendable, CustomTestStringConvertible {
  enum Change: String, Sendable, CaseIterable {
    case create, data, rename, move, delete
  }

  enum Order: String, Sendable, CaseIterable {
    /// A's change is on the server before B, which does not know of it, syncs.
    case aFirst = "A first"
    case bFirst = "B first"
    /// Both push without having pulled: A's commit arrives first, B's is refused and planned again.
    case bothOffline = "both offline"
  }

  enum Relation: String, Sendable, CaseIterable {
    case sameNode = "same node"
    /// A changes the parent, and B its child.
    case parentAndChild = "parent and child"
    case sameName = "siblings with the same name"
    case other
  }

  /// The final trees. `server` is the tree of every device that has nothing queued.
  struct Outcome: Sendable {
    var server: String
    /// Set if that device shows another tree, because some of its operations wait for its app.
    var a: String?
    var b: String?
  }

  var relation: Relation
  var changes: String
  var order: Order
  var scene: Scene
  var outcome: Outcome

  var testDescription: String { "\(relation.rawValue): \(changes), \(order.rawValue)" }
}

extension ConvergenceRow {
  /// Steps of one device. All paths are relative to the row's folder.
  typealias Steps = @Sendable (Actor) async throws -> Void

  struct Scene: Sendable {
    var start: Steps
    var a: Steps
    var b: Steps
    /// A's first change is on the server, but its answer was lost: B has seen it, and A does not know that it arrived.
    var isAUnderWay = false
  }

  /// A device confined to one folder.
  struct Actor: Sendable {
    let device: TestDevice
    let folder: String

    func create(_ path: String, _ text: String = "") async throws { try await device.create(folder + path, text) }
    func edit(_ path: String, _ text: String) async throws { try await device.edit(folder + path, text) }
    func rename(_ path: String, _ name: String) async throws { try await device.rename(folder + path, to: name) }
    func move(_ path: String, _ new: String) async throws { try await device.move(folder + path, to: folder + new) }
    func delete(_ path: String) async throws { try await device.delete(folder + path) }

    func exists() async throws -> Bool {
      let path = ZDCTreesystemPath(folder)
      return try await device.write { _, cloud in path.flatMap(cloud.node(path:)) != nil }
    }

    /// Returns the tree below the folder, with paths relative to it.
    func tree() async throws -> String {
      try await device.tree(versions: false).split(separator: "\n").filter { $0.hasPrefix(folder + "/") }
        .map { $0.dropFirst(folder.count) }.joined(separator: "\n")
    }
  }
}
