import Foundation
import Testing

/// A fragment that stands in this target behind a condition, because what it calls does not exist yet.
struct DueFragment {
  var fragment: String
  var missing: String
  var condition: String

  static let all = [
    DueFragment(
      fragment: "004 inviting", missing: "recursiveAddShareItem, sendMessage(toRecipients:withDependencies:)",
      condition: "SEED_SHARING"),
    DueFragment(
      fragment: "004 data(forMessage:transaction:)", missing: "graftInvite(for:), ZDCCloudPath.path()",
      condition: "SEED_SHARING"),
    DueFragment(
      fragment: "004 didSendMessage, didDiscoverNewNode", missing: "messages; compiles", condition: "SEED_SHARING"),
    DueFragment(
      fragment: "004 accepting", missing: "ZDCCloudPath(path:), graftNode(withLocalPath:…)", condition: "SEED_SHARING"),
  ]
}

@Suite struct DueFragmentTests {
  /// None is left out silently: each condition in the sources has its lines here, and the run prints them.
  @Test func everyConditionIsListed() throws {
    let folder = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
    let files = try FileManager.default.contentsOfDirectory(atPath: folder.path).filter { $0.hasPrefix("Seed00") }
    #expect(files.count == 5)
    for condition in ["SEED_SHARING"] {
      let inSources = try files.reduce(0) { count, file in
        let text = try String(contentsOf: folder.appendingPathComponent(file), encoding: .utf8)
        return count + text.components(separatedBy: "#if " + condition).count - 1
      }
      let listed = DueFragment.all.filter { $0.condition == condition }
      // All of seed 004 stands behind one condition.
      #expect(inSources == 1)
      for due in listed { print("due with \(condition): \(due.fragment): \(due.missing)") }
    }
  }
}
