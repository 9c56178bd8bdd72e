/// When a kill strikes: measured in bytes and answers that passed the proxy, never in time.
enum Moment: Sendable, Hashable, CustomStringConvertible {
  /// The n-th byte from the client has passed.
  case up(Int)
  /// The n-th byte from the server has passed.
  case down(Int)
  /// The server accepted the n-th commit; its answer was delivered or lost.
  case commitAnswer(Int, isDelivered: Bool)

  var description: String {
    switch self {
    case .up(let count): "at byte \(count) to the server"
    case .down(let count): "at byte \(count) to the client"
    case .commitAnswer(let count, let isDelivered): "\(isDelivered ? "after" : "instead of") commit answer \(count)"
    }
  }
}

enum Direction: Sendable {
  case up, down
}

/// Counts the traffic and detects the moment. Pure: no input or output.
struct Meter: Sendable {
  struct Counts: Sendable, Hashable {
    var up = 0
    var down = 0
    var commitAnswers = 0
  }

  private(set) var counts = Counts()
  /// Nil once it was reached.
  private(set) var moment: Moment?

  init(_ moment: Moment? = nil) {
    self.moment = moment
  }

  /// Lets a slice pass, or its part up to the moment.
  ///
  /// - Parameter awaitsCommitAnswer: state of each connection; requests and answers alternate on it.
  /// - Returns: the number of bytes to let through, and whether the moment is reached after them.
  mutating func pass(
    _ slice: ArraySlice<UInt8>, _ direction: Direction, awaitsCommitAnswer: inout Bool
  ) -> (count: Int, isMoment: Bool) {
    let isAnswer = direction == .down && awaitsCommitAnswer
    if isAnswer { awaitsCommitAnswer = false }
    if direction == .up, slice.starts(with: Self.commitRequest) { awaitsCommitAnswer = true }
    if isAnswer, slice.starts(with: Self.success) { counts.commitAnswers += 1 }
    let count = allowed(slice.count, direction)
    if direction == .up { counts.up += count } else { counts.down += count }
    guard hasCome else { return (count, false) }
    moment = nil
    return (count, true)
  }

  private static let commitRequest = Array("POST /v1/commits ".utf8)
  private static let success = Array("HTTP/1.1 200".utf8)

  private func allowed(_ count: Int, _ direction: Direction) -> Int {
    switch (moment, direction) {
    case (.up(let end)?, .up): min(count, end - counts.up)
    case (.down(let end)?, .down): min(count, end - counts.down)
    case (.commitAnswer(counts.commitAnswers, isDelivered: false)?, .down): 0
    default: count
    }
  }

  private var hasCome: Bool {
    switch moment {
    case .up(let end): counts.up >= end
    case .down(let end): counts.down >= end
    case .commitAnswer(let count, _): counts.commitAnswers >= count
    case nil: false
    }
  }
}
