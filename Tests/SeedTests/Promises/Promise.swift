/// A promise that the original documentation makes to an app, in our own words, with the tests that prove it.
///
/// The rows are in `Promises+….swift`. Work that fulfils a promise adds its tests to the row. ``PromiseTests`` checks
/// that these tests exist, and prints the table.
struct Promise: Sendable {
  /// For example `seed-3.5-createNode`, `check-000-1` or `behaviour-7`.
  var id: String
  var wording: String
  var state: State

  enum State: Sendable {
    /// Proven by these tests, named `Suite/function`, of any test target, or of the sample app's.
    case tested([String])
    /// Not fulfilled yet, because of this missing work.
    case due(String)
  }
}

extension Promise.State {
  static func tested(by tests: String...) -> Promise.State { .tested(tests) }
}

/// A group of rows, with the number of rows that it must have.
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
  /// In the order of the original documentation: parts 1 to 3.4, 3.5 to 3.6, 3.7 to the end.
  static let members = model + transaction + managersAndDelegate
}
