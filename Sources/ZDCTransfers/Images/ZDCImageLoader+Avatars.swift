public import Foundation
internal import ZDCAccounts
public import ZDCClientStore
internal import ZDCSupport

// Avatars exist only on disk: no server stores them yet.

extension ZDCImageLoader {
  /// Fetches a user's avatar for the user interface, from memory or disk.
  ///
  /// ```swift
  /// session.imageManager.fetchUserAvatar(ZDCUser(user)) { image, willFetch in
  ///   cell.thumbnail.image = image ?? placeholder
  /// } postFetch: { image, error in
  ///   cell.thumbnail.image = image ?? placeholder
  /// }
  /// ```
  ///
  /// - Parameters:
  ///   - user: the user whose avatar is fetched.
  ///   - options: select one of the user's identities; nil for the main avatar.
  ///   - preFetch: called before this returns, on the calling thread.
  ///   - postFetch: called on the main thread, if `willFetch` was true.
  /// - Returns: nil, because there is nothing to download.
  @discardableResult
  public func fetchUserAvatar(
    _ user: ZDCUser, with options: ZDCFetchOptions? = nil, preFetch: (_ image: Image?, _ willFetch: Bool) -> Void,
    postFetch: @escaping @MainActor @Sendable (_ image: Image?, _ error: (any Error)?) -> Void
  ) -> ZDCDownloadTicket? {
    fetch(user, ImageRequest(options), preFetch, ImageDelivery(onMain: postFetch))
  }

  /// The same, for callers off the main thread.
  @_disfavoredOverload
  @discardableResult
  public func fetchUserAvatar(
    _ user: ZDCUser, with options: ZDCFetchOptions? = nil, completionQueue: DispatchQueue? = nil,
    preFetch: (_ image: Image?, _ willFetch: Bool) -> Void,
    postFetch: sending @escaping (_ image: Image?, _ error: (any Error)?) -> Void
  ) -> ZDCDownloadTicket? {
    fetch(user, ImageRequest(options), preFetch, ImageDelivery(on: completionQueue ?? .main, postFetch))
  }

  /// Fetches a variant of a user's avatar, such as a scaled or rounded one, as
  /// ``fetchNodeThumbnail(_:with:processingID:processingBlock:preFetch:postFetch:)`` does for thumbnails.
  @discardableResult
  public func fetchUserAvatar(
    _ user: ZDCUser, with options: ZDCFetchOptions? = nil, processingID: String?,
    processingBlock: @escaping Processing, preFetch: (_ image: Image?, _ willFetch: Bool) -> Void,
    postFetch: @escaping @MainActor @Sendable (_ image: Image?, _ error: (any Error)?) -> Void
  ) -> ZDCDownloadTicket? {
    fetch(user, ImageRequest(options, processingID, processingBlock), preFetch, ImageDelivery(onMain: postFetch))
  }

  private func fetch(
    _ user: ZDCUser, _ request: ImageRequest<Image>, _ preFetch: (Image?, Bool) -> Void,
    _ deliver: ImageDelivery<Image>
  ) -> ZDCDownloadTicket? {
    let identity = request.options.identityID
    let key = ImageMemoryCache<Image>.Key(
      owner: user.uuid, identity: identity, processingID: request.processingID)
    if request.isKept, let known = avatars.image(key) {
      preFetch(known, false)
      return nil
    }
    let read = avatars.beginRead(user.uuid)
    guard let file = disk.export(.avatar(user.uuid, identity))?.cryptoFile else {
      avatars.endRead(read)
      preFetch(nil, false)
      return nil
    }
    preFetch(nil, true)
    Task {
      defer { avatars.endRead(read) }
      guard let image = opened(file) else { return await deliver(nil, ZDCError(.objectNotDecodable)) }
      let result = request.processing.map { $0(image) } ?? image
      if request.isKept { avatars.set(result, key, cost: result.map(cost) ?? 0, of: read) }
      await deliver(result)
    }
    return nil
  }

  private func opened(_ file: ZDCCryptoFile) -> Image? {
    do { return try decode(try ZDCFileConversion.decryptCryptoFile(intoMemory: file)) } catch {
      disk.report(error)
      return nil
    }
  }
}
