/// The order in which two devices change, pull and push: everything of a case except the operations.
struct SmallSchedule: Hashable, Sendable, CustomStringConvertible {
  enum Step: Hashable, Sendable {
    /// A device's app performs the operation with this number.
    case change(Int, Int)
    case pull(Int)
    /// Sends what is queued. A device that is behind gets a 409, and pulls what comes with it.
    case push(Int)
  }

  var steps: [Step]
  /// Whether each page of the log that a device gets has one commit.
  var hasSmallPages = false

  /// The device of each operation.
  var authors: [Int] {
    steps.compactMap { if case .change(let device, _) = $0 { device } else { nil } }
  }

  /// Whether a device pushes while it is behind.
  var isOvertaken: Bool {
    var (head, seen) = (0, [0, 0])
    for step in steps {
      switch step {
      case .change: break
      case .pull(let device): seen[device] = head
      case .push(let device):
        if seen[device] < head { return true }
        head += 1
        seen[device] = head
      }
    }
    return false
  }

  /// Whether a device gets several commits in one pull. Only then does the length of the pages matter.
  var hasLongPull: Bool {
    var (head, seen) = (0, [0, 0])
    for step in steps {
      switch step {
      case .change: break
      case .pull(let device):
        if head - seen[device] > 1 { return true }
        seen[device] = head
      case .push(let device):
        if head - seen[device] > 1 { return true }
        head += 1
        seen[device] = head
      }
    }
    return false
  }

  /// `a0 A> Bv`: A does operation 0, A pushes, B pulls.
  var description: String {
    steps.map { step in
      switch step {
      case .change(let device, let index): "\(device == 0 ? "a" : "b")\(index)"
      case .pull(let device): "\(device == 0 ? "A" : "B")v"
      case .push(let device): "\(device == 0 ? "A" : "B")>"
      }
    }.joined(separator: " ") + (hasSmallPages ? " in pages of one" : "")
  }
}

extension SmallSchedule {
  /// Returns every placement of pulls and pushes among `count` operations of two devices, until both have everything.
  ///
  /// Two placements are the same if each device does the same in the same order and sees the same commits: steps of
  /// different devices commute unless one sees the other's commit. The first operation is A's, because swapping the
  /// devices' names changes nothing. Where a device gets several commits in one pull, there are two schedules: one with
  /// a single page, and one with a page for each commit.
  static func all(operations count: Int) -> [SmallSchedule] {
    var found: [[[Event]]: SmallSchedule] = [:]
    var order: [[[Event]]] = []
    for rest in 0..<(1 << max(count - 1, 0)) {
      let authors = [0] + (0..<max(count - 1, 0)).map { rest >> $0 & 1 }
      var search = Search(authors: authors)
      search.explore(Search.State()) { events, steps in
        guard found[events] == nil else { return }
        found[events] = SmallSchedule(steps: steps)
        order.append(events)
      }
    }
    return order.compactMap { found[$0] }.flatMap { schedule in
      guard schedule.hasLongPull else { return [schedule] }
      var paged = schedule
      paged.hasSmallPages = true
      return [schedule, paged]
    }
  }

  /// A step of one device, with the length of the log that it sees.
  private enum Event: Hashable {
    case change(Int), pull(Int), push(Int), overtakenPush(Int)
  }

  private struct Search {
    struct State {
      var next = 0
      var head = 0
      var seen = [0, 0]
      var isQueued = [false, false]
      var events: [[Event]] = [[], []]
      var steps: [Step] = []
    }

    let authors: [Int]

    mutating func explore(_ state: State, _ found: ([[Event]], [Step]) -> Void) {
      if state.next == authors.count, state.isQueued == [false, false], state.seen.allSatisfy({ $0 == state.head }) {
        return found(state.events, state.steps)
      }
      if state.next < authors.count { explore(changed(state), found) }
      for device in 0...1 {
        if state.seen[device] < state.head { explore(pulled(state, device), found) }
        if state.isQueued[device] { explore(pushed(state, device), found) }
      }
    }

    private func changed(_ state: State) -> State {
      var state = state
      let device = authors[state.next]
      state.isQueued[device] = true
      state.events[device].append(.change(state.next))
      state.steps.append(.change(device, state.next))
      state.next += 1
      return state
    }

    private func pulled(_ state: State, _ device: Int) -> State {
      var state = state
      state.seen[device] = state.head
      state.events[device].append(.pull(state.head))
      state.steps.append(.pull(device))
      return state
    }

    private func pushed(_ state: State, _ device: Int) -> State {
      var state = state
      let isBehind = state.seen[device] < state.head
      state.head += 1
      (state.seen[device], state.isQueued[device]) = (state.head, false)
      state.events[device].append(isBehind ? .overtakenPush(state.head) : .push(state.head))
      state.steps.append(.push(device))
      return state
    }
  }
}
