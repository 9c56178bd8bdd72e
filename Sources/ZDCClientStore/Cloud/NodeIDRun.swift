package import ZDCProtocol

/// Ids of the nodes that one transaction of the app creates: random, and neighbours.
///
/// A thousand of them in a row begin with the same four random bytes, the other twelve are each node's own. They lie
/// together in every index of ids, here, on the server and on other devices: what goes out in one commit changes few
/// pages of it, however large the tree is. That they were made together the commit says anyway.
package struct NodeIDRun {
  private static let length = 1_024
  private var beginning: UInt64 = 0
  private var left = 0

  package mutating func next() -> NodeID {
    var random = SystemRandomNumberGenerator()
    if left == 0 {
      beginning = random.next() & 0xffff_ffff_0000_0000
      left = Self.length
    }
    left -= 1
    return NodeID(high: beginning | random.next() & 0xffff_ffff, low: random.next())
  }
}
