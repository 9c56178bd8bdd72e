package import ZDCProtocol

/// The IDs of the nodes that one transaction of the app creates: random, but adjacent.
///
/// About a thousand IDs in a row begin with the same four random bytes; the other twelve differ for each node. The IDs
/// are adjacent in every index, on this device, on the server and on other devices, so one commit changes few pages of
/// an index, however large the tree is. The commit itself reveals that the nodes were created together.
package struct NodeIDRun {
  private static let length = 1_024
  private var beginning: UInt64 = 0
  private var left = 0

  package init() {}

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
