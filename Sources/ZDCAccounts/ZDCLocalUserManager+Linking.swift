public import Foundation
internal import ZDCClientAPI
public import ZDCClientStore
internal import ZDCCrypto
internal import ZDCProtocol
internal import ZDCSupport

/// A new device that waits for a device of the account: the new device's side of a link (PROTOCOL 3.4).
///
/// The keys are in memory only. If the app ends, start another link.
///
/// ```swift
/// let link = try await session.localUserManager.startDeviceLink()
/// show([link.code, link.expirationDate.formatted()])
/// ```
public struct ZDCDeviceLink: Sendable {
  /// The code to show as a QR code, or to copy to the other device. It holds no secret.
  public let code: String
  /// When the code stops working, about ten minutes after it was made.
  public let expirationDate: Date
  let parsed: DeviceLinkCode
  let key: DecryptionKey
  let nonce: DeviceLinkNonce
  /// The answer that counts. The nonce is revealed after it, and another answer could be chosen with the nonce known.
  let answer = Locked<DeviceLinkAnswer?>(nil)
  let users: ZDCLocalUserManager
}

/// An account that another device offers to this one, not yet added.
///
/// ```swift
/// let account = try await session.localUserManager.startDeviceLink().account()
/// if await userAgrees(account.digits) { _ = try await account.add() }
/// ```
public struct ZDCLinkedAccount: Sendable {
  /// The text of the account's user ID.
  public let userID: String
  /// Six digits. Add the account only if the other device shows the same: otherwise it is the account of another person.
  public let digits: String
  let answer: DeviceLinkAnswer
  let users: ZDCLocalUserManager
}

/// A device that asks for an account of this device: the account's side of a link (PROTOCOL 3.4).
///
/// ```swift
/// let request = try await session.localUserManager.linkRequest(code: scannedCode, for: user.uuid)
/// show([try await request.approve()])
/// ```
public struct ZDCLinkRequest: Sendable {
  let code: DeviceLinkCode
  let offer: DeviceLinkOffer
  /// The sealed answer, once it is made. A link has one.
  let sealed = Locked<[UInt8]?>(nil)
  let user: UserID
  let users: ZDCLocalUserManager
}

// Adding a device by a code that it shows, instead of the 24 words.

extension ZDCLocalUserManager {
  /// Begins to add this device to an account of another device, which scans the code.
  ///
  /// ```swift
  /// let link = try await session.localUserManager.startDeviceLink()
  /// show([link.code])
  /// let account = try await link.account()
  /// if await userAgrees(account.digits) {
  ///   let user = try await account.add()
  ///   openTree(session.tree(of: user))
  /// }
  /// ```
  ///
  /// - Throws: `ZDCServerError`; ``ZDCTransportError``; ``ZDCError`` with `cryptographyFailure`.
  public func startDeviceLink() async throws -> ZDCDeviceLink {
    let key = try translating { try DecryptionKey.random() }
    let nonce = DeviceLinkNonce.random()
    let offer = DeviceLinkOffer(publicKey: key.publicKey, nonce: nonce)
    let code = DeviceLinkCode(id: .random(), offer: offer)
    _ = try await connection.info()
    try await connection.offerDevice(offer.bytes, as: code.id)
    return ZDCDeviceLink(
      code: code.text, expirationDate: Date(ms: now() + Limits.deviceLinkMs), parsed: code, key: key, nonce: nonce,
      users: self)
  }

  /// Finds the device that shows a code. Nothing is sent to it yet.
  ///
  /// Call this only with a code that the user has just scanned or typed inside your app, and never with one from a
  /// link or message: the device that shows the code gets full access to the account.
  ///
  /// ```swift
  /// let request = try await session.localUserManager.linkRequest(code: scannedCode, for: user.uuid)
  /// if await userAgrees("Add the device?") { show([try await request.approve()]) }
  /// ```
  ///
  /// - Parameters:
  ///   - code: The text of the code.
  ///   - localUserID: The account to give to the device.
  /// - Throws: ``ZDCError`` with `invalidLink`, `linkExpired` or `localUserNotFound`; `ZDCSecurityError` with
  ///   `linkRequiresInAppScan` for a code inside of a web address, or `keyCommitmentMismatch` if the server exchanged
  ///   the device's key; `ZDCServerError`; ``ZDCTransportError``.
  public func linkRequest(code: String, for localUserID: String) async throws -> ZDCLinkRequest {
    let user = try Self.userID(localUserID)
    let parsed = try Self.parse(code)
    let api = try await serverAPI(for: user)
    let offer = try DeviceLinkOffer(try await Self.whileOpen { try await api.offeredDevice(parsed.id) })
    try parsed.check(offer)
    return ZDCLinkRequest(code: parsed, offer: offer, user: user, users: self)
  }

  private static func parse(_ text: String) throws -> DeviceLinkCode {
    let text = text.trimmingCharacters(in: .whitespacesAndNewlines)
    if let code = DeviceLinkCode(text) { return code }
    let isWrapped = !text.hasPrefix(DeviceLinkCode.scheme) && text.contains(DeviceLinkCode.scheme)
    if isWrapped { throw ZDCSecurityError(.linkRequiresInAppScan) }
    throw ZDCError(.invalidLink)
  }

  /// Reports an unknown link as an expired one: the server has forgotten it.
  static func whileOpen<Value>(_ body: () async throws -> Value) async throws -> Value {
    do { return try await body() } catch let error as ServerError where error.code == .notFound {
      throw ZDCError(.linkExpired, underlying: error)
    }
  }
}

extension ZDCDeviceLink {
  /// Waits until the other device has approved this one, and returns the account that it offers.
  ///
  /// May be repeated after an error. The first answer that opens is the one that counts.
  ///
  /// - Throws: ``ZDCError`` with `linkExpired`; `ZDCSecurityError` with `messageAuthFailed` if the server exchanged the
  ///   answer; `ZDCServerError`; ``ZDCTransportError``; `CancellationError`.
  public func account() async throws -> ZDCLinkedAccount {
    let answer = try await firstAnswer()
    try await ZDCLocalUserManager.whileOpen { try await users.connection.revealNonce(nonce, of: parsed.id) }
    let offer = DeviceLinkOffer(publicKey: key.publicKey, nonce: nonce)
    return ZDCLinkedAccount(
      userID: answer.user.text, digits: parsed.digits(offer, nonce: nonce, user: answer.user), answer: answer,
      users: users)
  }

  private func firstAnswer() async throws -> DeviceLinkAnswer {
    if let known = answer.withLock({ $0 }) { return known }
    let sealed = try await whileNil { try await users.connection.deviceLinkAnswer(parsed.id) }
    let opened = try DeviceLinkAnswer(opening: sealed, key: key, code: parsed)
    return answer.withLock { first in
      first = first ?? opened
      return first ?? opened
    }
  }
}

extension ZDCLinkedAccount {
  /// Adds the account to this device. Its trees are empty until the first pull.
  ///
  /// The server must show at least what the other device knew: a shorter chain or log is an error.
  ///
  /// - Parameter createsTree: See ``ZDCLocalUserManager/login(words:createsTree:)``.
  /// - Throws: The errors of ``ZDCLocalUserManager/login(words:createsTree:)``; `ZDCSecurityError` with
  ///   `identityChainRollback` if the server shows an older state of the account.
  public func add(createsTree: Bool = false) async throws -> ZDCLocalUser {
    try await users.login(linked: answer, createsTree: createsTree)
  }
}

extension ZDCLinkRequest {
  /// Gives the account to the device: its secret key, sealed to the device, and what this device knows of its history.
  ///
  /// The device has full access from then on. The call waits until the device has received the account. May be repeated.
  ///
  /// ```swift
  /// let request = try await session.localUserManager.linkRequest(code: scannedCode, for: user.uuid)
  /// show([try await request.approve()])  // the new device shows the same digits
  /// ```
  ///
  /// - Returns: Six digits. If the new device shows others, it was offered the account of another person: add it there only
  ///   if they are the same.
  /// - Throws: ``ZDCError`` with `linkExpired`; `ZDCSecurityError` with `accessKeyChanged` if this device does not have
  ///   the account's new words yet, or `keyCommitmentMismatch` if the server exchanged the number that the digits are
  ///   made with; `ZDCServerError`; ``ZDCTransportError``; `CancellationError`.
  public func approve() async throws -> String {
    let answer = try await firstAnswer()
    let api = try await users.serverAPI(for: user)
    try await ZDCLocalUserManager.whileOpen { try await api.answerDevice(code.id, answer) }
    let bytes = try await whileNil { try await api.deviceLinkNonce(code.id) }
    guard let nonce = DeviceLinkNonce(bytes) else { throw ZDCSecurityError(.keyCommitmentMismatch) }
    try offer.check(nonce)
    return code.digits(offer, nonce: nonce, user: user)
  }

  private func firstAnswer() async throws -> [UInt8] {
    if let known = sealed.withLock({ $0 }) { return known }
    let made = try await users.linkAnswer(for: user).seal(to: offer, code: code)
    return sealed.withLock { first in
      first = first ?? made
      return first ?? made
    }
  }
}

/// Asks the server until the other device has sent something, or the link has expired.
private func whileNil<Value>(_ body: () async throws -> Value?) async throws -> Value {
  while true {
    try Task.checkCancellation()
    if let value = try await ZDCLocalUserManager.whileOpen(body) { return value }
  }
}

extension ZDCLocalUserManager {
  fileprivate func linkAnswer(for user: UserID) async throws -> DeviceLinkAnswer {
    try await database.asyncRead { transaction in
      guard let row = try transaction.localUsers.user(user) else { throw ZDCError(.localUserNotFound) }
      let keys = try UserKeys(row)
      guard !keys.isAccessKeyChanged else { throw ZDCSecurityError(.accessKeyChanged, user: user) }
      let heads = try transaction.zones.zones(localUser: row.id).compactMap { zone in
        zone.head.map { VerifiedHead(zone: zone.zone, seq: $0.seq, hash: $0.hash) }
      }
      return DeviceLinkAnswer(
        accessKey: row.secrets.accessKey, user: user, chainSeq: keys.identity.seq,
        chainHash: keys.identity.head,
        heads: Array(heads.prefix(Limits.deviceLinkHeads)))
    }
  }
}
