package import Foundation

/// The destination of one fetch's results, which are delivered one after the other, in order, on the caller's queue.
package struct ImageDelivery<Image: Sendable>: Sendable {
  private let call: @Sendable (Image?, (any Error)?) async -> Void

  package init(onMain block: @escaping @MainActor @Sendable (Image?, (any Error)?) -> Void) {
    call = { image, error in await MainActor.run { block(image, error) } }
  }

  package init(on queue: DispatchQueue, _ block: sending @escaping (Image?, (any Error)?) -> Void) {
    let box = Box(block)
    call = { image, error in
      await withCheckedContinuation { continuation in
        queue.async {
          box.block(image, error)
          continuation.resume()
        }
      }
    }
  }

  func callAsFunction(_ image: Image?, _ error: (any Error)? = nil) async { await call(image, error) }

  /// Safe: ownership of the block was transferred, and its calls never overlap.
  private final class Box: @unchecked Sendable {
    let block: (Image?, (any Error)?) -> Void

    init(_ block: sending @escaping (Image?, (any Error)?) -> Void) {
      self.block = block
    }
  }
}
