// Images on macOS.

public import AppleFoundation

public import struct Foundation.CGSize

open class NSImage: NSObject, @unchecked Sendable {
  public init?(data: Data) { nil }
  open var size: CGSize { .zero }
}
