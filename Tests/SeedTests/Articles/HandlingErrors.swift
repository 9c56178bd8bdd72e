import ZeroDarkCloud

/// The examples of the article "Handling errors", as an app would have them.
final class HandlingErrorsArticle: Sendable {
  let session: ZDCSession
  let user: String

  init(session: ZDCSession, user: String) {
    self.session = session
    self.user = user
  }

  func show(_ text: String) {}

  func catching() async throws {
    do {
      try await session.syncManager.syncUntilIdle(localUserID: user)
    } catch let error as ZDCTransportError where error.isTemporary {
      show("Offline. Your changes are sent later.")
    } catch let error as ZDCServerError where error.code == .quotaExceeded {
      show("The account is full. Delete something.")
    } catch let error as ZDCSecurityError {
      show("The server's data is not trustworthy: \(error.code.explanation)")
    } catch let error as ZDCError where error.code == .syncedElsewhere {
      // Another process syncs this database, and sends what this one has queued.
    }
  }

  func advice(_ error: ZDCError) -> String {
    switch error.code {
    case .diskFull: "Make room on this device."
    case .wrongPassphrase, .passphraseRequired: "Type your pass-phrase."
    case .databaseTooNew: "Update the app."
    default: error.description
    }
  }
}
