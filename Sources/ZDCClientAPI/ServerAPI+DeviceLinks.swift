package import ZDCProtocol

extension ServerAPI {
  /// Downloads the offer of the device that asks to be linked under this ID.
  ///
  /// - Throws: `ZDCServerError` with `notFound` if there is none, or it has expired.
  package func offeredDevice(_ id: DeviceLinkID) async throws -> [UInt8] {
    try await answer(to: .get(Routes.path(Routes.deviceLink, id.text)), limit: Limits.jsonBytes).body
  }

  /// Sends the sealed answer to the device. May be repeated.
  package func answerDevice(_ id: DeviceLinkID, _ sealed: [UInt8]) async throws {
    _ = try await answer(
      to: .bytes(.put, Routes.path(Routes.deviceLinkAnswer, id.text), sealed), limit: Limits.jsonBytes)
  }

  /// Waits for the nonce of a link for as long as the server holds the request.
  ///
  /// - Returns: Nil if the device has not revealed it yet. Ask again.
  /// - Throws: `ZDCServerError` with `notFound` if the link has expired.
  package func deviceLinkNonce(_ id: DeviceLinkID) async throws -> [UInt8]? {
    let answer = try await answer(to: .get(Routes.path(Routes.deviceLinkNonce, id.text)), limit: Limits.jsonBytes)
    return answer.status == 204 ? nil : answer.body
  }
}
