// Images on iOS, tvOS, watchOS and visionOS.

public import AppleFoundation

public import struct Foundation.CGFloat
public import struct Foundation.CGSize

open class UIImage: NSObject, @unchecked Sendable {
  public init?(data: Data) { nil }
  open var size: CGSize { .zero }
  open var scale: CGFloat { 1 }
}

@MainActor open class UIApplication: NSObject {
  nonisolated public class var didBecomeActiveNotification: Notification.Name { .init("") }
}
