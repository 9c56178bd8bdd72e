/// Something that the seed documents promise to an app, in our own words, and the tests that tell it is kept.
///
/// The rows stand in `Promises+….swift`. Whoever builds one of them names its tests there; ``PromiseTests`` finds out
/// whether they exist, and prints the table.
struct Promise: Sendable {
  /// `seed-3.5-createNode`, `check-000-1`, `behaviour-7`.
  var id: String
  var wording: String
  var state: State

  enum State: Sendable {
    /// By these tests, as `Suite/function`; of any test target.
    case tested([String])
    /// Not yet, and said so: the work that brings it.
    case due(Work)
  }

  enum Work: String, Sendable, CaseIterable {
    /// Disk, image and progress managers, background transfers.
    case managers
    /// Shares, messages, grafts.
    case sharing
  }
}

extension Promise.State {
  static func tested(by tests: String...) -> Promise.State { .tested(tests) }
}

/// Where rows come from, with the number that there have to be.
struct PromiseGroup: Sendable {
  var title: String
  var prefix: String
  var count: Int
  var rows: [Promise]

  static let all = [
    PromiseGroup(title: "Members that the seeds name", prefix: "seed-", count: 86, rows: Promise.members),
    PromiseGroup(title: "Promises that are easy to miss", prefix: "check-", count: 49, rows: Promise.easyToMiss),
    PromiseGroup(title: "Subtle behaviours", prefix: "behaviour-", count: 25, rows: Promise.behaviours),
  ]
}

extension Promise {
  /// In the order of the reference: parts 1 to 3.4, 3.5 to 3.6, 3.7 to the end.
  static let members = model + transaction + managersAndDelegate
}
