/// A sequence of operations under a schedule.
struct SmallCase: Hashable, Sendable, CustomStringConvertible {
  var schedule: SmallSchedule
  var operations: [SmallOperation]

  var description: String {
    "\(operations.enumerated().map { "\($0): \($1)" }.joined(separator: ", ")) [\(schedule)]"
  }

  /// Returns the model after all steps, or nil if an app cannot perform one of the operations.
  func expected() -> SmallModel? {
    var model = SmallModel()
    for step in schedule.steps {
      switch step {
      case .change(let device, let number):
        guard model.change(operations[number], number: number, by: device) else { return nil }
      case .pull(let device): model.pull(device)
      case .push(let device): model.push(device)
      }
    }
    while model.replicas.contains(where: { $0.isQueued || $0.base != model.cloud }) {
      for device in 0...1 { model.push(device) }
    }
    // Devices then apply the table page by page, while the model applies all pages together.
    if schedule.hasSmallPages { model.isUndecided = true }
    return model
  }

  /// The number of operations of one commit that the case may become.
  var weight: Int { operations.map(\.weight).reduce(0, +) }
}

extension SmallCase {
  /// Returns every sequence of operations under a schedule; an app may be unable to perform some of them.
  ///
  /// - Parameter isCore: Whether to take only the operations around the folder `n`.
  static func all(_ schedule: SmallSchedule, isCore: Bool = false) -> [SmallCase] {
    var sequences: [[SmallOperation]] = [[]]
    for _ in schedule.authors {
      let next = isCore ? SmallOperation.core : SmallOperation.all
      sequences = sequences.flatMap { head in
        (next + made(by: head, isCore: isCore)).map { head + [$0] }
      }
    }
    return sequences.map { SmallCase(schedule: schedule, operations: $0) }
  }

  /// Returns distinct cases, the same number for each of some schedules, chosen by a seed.
  static func sample(operations count: Int, cases wanted: Int, seed: UInt64) -> [SmallCase] {
    var numbers = SeededNumbers(seed: seed)
    let schedules = SmallSchedule.all(operations: count).shuffled(using: &numbers)
    let share = min(max(wanted / 80, 50), 250)
    var cases: [SmallCase] = []
    for schedule in schedules.prefix((wanted + share - 1) / share) {
      var drawn: Set<SmallCase> = []
      while drawn.count < share { drawn.insert(random(schedule, using: &numbers)) }
      cases += drawn.sorted { $0.description < $1.description }
    }
    return cases
  }

  /// Returns a case that two apps can perform.
  private static func random(_ schedule: SmallSchedule, using numbers: inout SeededNumbers) -> SmallCase {
    while true {
      var operations: [SmallOperation] = []
      for _ in schedule.authors {
        let possible = SmallOperation.all + made(by: operations, isCore: false)
        operations += [possible.randomElement(using: &numbers)].compactMap { $0 }
      }
      let played = SmallCase(schedule: schedule, operations: operations)
      if played.expected() != nil { return played }
    }
  }

  /// Returns operations on nodes that the sequence has made so far. In the core, what was replaced is replaced back.
  private static func made(by head: [SmallOperation], isCore: Bool) -> [SmallOperation] {
    head.indices.flatMap { index -> [SmallOperation] in
      switch head[index] {
      case .replace where isCore: [.replace(.made(index)), .move(.f, .made(index))]
      case .create where !isCore, .replace where !isCore: SmallOperation.on(.made(index))
      default: []
      }
    }
  }
}

/// A part of all cases of a number of operations. Together, all slices are all cases.
struct SmallSlice: CustomStringConvertible {
  let operations: Int
  let isCore: Bool
  /// The number of slices that share the schedules, and the number that share the sequences of a schedule.
  let parts: (schedules: UInt64, sequences: UInt64)
  /// Any number: the slices repeat.
  let number: UInt64

  private var count: UInt64 { parts.schedules * parts.sequences }

  var description: String {
    "\(operations) operations\(isCore ? " around a folder" : ""), slice \(number % count) of 0..<\(count) (ZDC_SEED)"
  }

  var cases: [SmallCase] {
    let (first, start) = (number % parts.schedules, number / parts.schedules % parts.sequences)
    return SmallSchedule.all(operations: operations).enumerated().flatMap { offset, schedule -> [SmallCase] in
      guard UInt64(offset) % parts.schedules == first else { return [] }
      let all = SmallCase.all(schedule, isCore: isCore)
      return stride(from: Int(start), to: all.count, by: Int(parts.sequences)).map { all[$0] }
    }
  }
}
