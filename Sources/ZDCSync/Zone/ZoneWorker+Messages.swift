internal import ZDCProtocol
internal import ZDCSupport

// The mailbox, which belongs to the worker of the inbox.

extension ZoneWorker {
  /// The maximum number of commits that one step makes.
  private static let messageCommits = 100

  /// Takes over the messages of known senders, and announces them.
  package func takeMessages() async throws -> ZonePuller.Pulled {
    try await step {
      try await identity.require()
      var pulled = ZonePuller.Pulled()
      var skipped: Set<MessageName> = []
      for _ in 0..<Self.messageCommits {
        let receiver = MessageReceiver(session: session, zone: zone)
        let excluded = refusedMessages.union(skipped)
        let taken = try await slots.run { [identity] in
          try await identity.signing { try await receiver.take(except: excluded) }
        }
        refusedMessages.formUnion(taken.refused)
        skipped.formUnion(taken.skipped)
        pulled += taken.pulled
        guard taken.hasMore else { break }
      }
      return pulled
    }
  }

  /// Lets the background sync pull the zone, because a member has named a head that this device does not have.
  func pullForMember() async {
    do {
      // A pull that is running may have asked the server before the head was stored.
      try await step { handle(.headNamed(isKnown: false)) }
      wake.signal()
    } catch {
      // The task was cancelled. The next list of zones finds the stored head.
    }
  }
}
