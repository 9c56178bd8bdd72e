/// What changed about a node in the cloud (seed 003). Never both: if both changed there are two calls.
public enum ZDCNodeChange: String, Sendable, Hashable, CaseIterable {
  /// Access, burn date or keys, but neither name nor place, which come as a move.
  case treesystem
  /// The content that an app stored.
  case data
}
