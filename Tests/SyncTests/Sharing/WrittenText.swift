/// A text that a random history has written.
struct WrittenText {
  let device: String
  let writer: Int
  /// The server's newest commit at that time: the text came later.
  let position: AccessModel.Position
  /// Whether it was written with a new node.
  let isCreation: Bool
  /// The owners of the trees where its node was or has been moved to.
  var owners: Set<Int>
  /// The people who have it as a message: its sender and its recipients.
  var correspondents: Set<Int> = []
  /// Whether the device had sent it, before the writer could lose access.
  var isSent = false

  /// - Parameter restricted: For each owner, the people whose access may have ended or been narrowed.
  func isRestricted(_ restricted: [Int: Set<Int>]) -> Bool {
    owners.contains { restricted[$0]?.contains(writer) == true }
  }
}
