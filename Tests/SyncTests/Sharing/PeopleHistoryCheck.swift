import Foundation
import ZeroDarkCloudTesting

@testable import ZeroDarkCloud

/// The final state of a random history of several people.
struct PeopleHistoryCheck {
  /// The devices of each person.
  let people: [[TestDevice]]
  let model: PeopleModel

  func run() async throws {
    for devices in people {
      let tree = try await devices[0].tree()
      for device in devices.dropFirst() where try await device.tree() != tree {
        throw TestFailure("\(device.name) shows\n\(try await device.tree())\nand \(devices[0].name)\n\(tree)")
      }
    }
    for devices in people { try await checkGrafts(devices[0]) }
    try await checkTexts()
  }

  /// Each graft shows its owner's branch, without the branches in it that the person may not read, has grafted elsewhere or
  /// owns, and without what the owner has grafted there: these have another place.
  private func checkGrafts(_ device: TestDevice) async throws {
    let grafts = try await device.graftPaths()
    for owner in people.map({ $0[0] }) where owner !== device {
      let originals = try await originals(of: grafts, on: device, in: owner)
      let others = try await owner.graftPaths()
      for (path, original) in originals {
        let hidden = (originals.values + others).filter { $0.hasPrefix(original + "/") }
        let shown = try await lines(device, path, as: device, in: owner, original, except: hidden)
        let own = try await lines(owner, original, as: device, in: owner, original, except: hidden)
        guard shown != own else { continue }
        throw TestFailure("\(device.name) shows at \(path)\n\(shown)\nand \(owner.name) at \(original)\n\(own)")
      }
    }
  }

  /// The paths that an owner's device has for the nodes of their own tree that are shown at grafts. The device may have
  /// grafted the same branches of another person, and show other branches in them elsewhere.
  private func originals(
    of grafts: [String], on device: TestDevice, in owner: TestDevice
  ) async throws -> [String: String] {
    var paths: [String: String] = [:]
    for path in try await owner.paths(below: "") {
      let node = try await owner.node(path)
      if node.anchor == nil { paths[node.cloudID] = path }
    }
    var found: [String: String] = [:]
    for graft in grafts { found[graft] = paths[try await device.cloudID(graft)] }
    return found
  }

  /// The nodes below a path, as far as `guest` may read their originals, and those above them.
  private func lines(
    _ device: TestDevice, _ path: String, as guest: TestDevice, in owner: TestDevice, _ original: String,
    except hidden: [String]
  ) async throws -> [String] {
    var lines: [String] = []
    var hidden = hidden
    for line in (try await device.branch(path) ?? "").split(separator: "\n") {
      let below = original + (line.range(of: "  ").map { line[..<$0.lowerBound] } ?? line)
      guard !hidden.contains(where: { below == $0 || below.hasPrefix($0 + "/") }) else { continue }
      // A branch inside of one that the guest may not read has no place in the guest's tree.
      guard try await owner.members(guest, of: below)[guest.name] != nil else {
        hidden.append(below)
        continue
      }
      lines.append(String(line))
    }
    return lines
  }

  private func checkTexts() async throws {
    let replaced = try await replacedNodes()
    var found: Set<String> = []
    for devices in people { found.formUnion(try await devices[0].shownLines()) }
    for token in model.texts.keys.sorted() where !found.contains(token) && !model.mayBeGone(token) {
      if model.nodes.isWritten(token, into: replaced) { continue }
      throw TestFailure("\(token.prefix(12)) is lost")
    }
  }

  /// The nodes of which a merge journal says that one of two versions, both in the cloud, has replaced the other, or that
  /// changes were not sent because the user has lost access.
  private func replacedNodes() async throws -> Set<String> {
    var nodes: Set<String> = []
    for device in people.joined() {
      let entries = try await device.write { _, cloud in cloud.mergeJournal() }
      for entry in entries
      where entry.kind == .accessLost || entry.kind == .deletedHere && entry.result.eTag != nil {
        nodes.formUnion([entry.cloudID, "\(device.name) \(entry.nodeID)"])
      }
    }
    return nodes
  }
}

extension TestDevice {
  /// The tops of other people's branches in the tree of the device's user, in random histories of several people.
  func graftPaths() async throws -> [String] {
    try await paths(below: "").filter { $0.split(separator: "/").last?.first == "g" }
  }

  /// The lines of all nodes that are shown in the tree of the device's user.
  func shownLines() async throws -> [String] {
    var lines: [String] = []
    for path in try await paths(below: "") {
      let data = try await content(of: path)?.data ?? Data()
      lines += String(decoding: data, as: UTF8.self).split(separator: "\n").map(String.init)
    }
    return lines
  }
}
