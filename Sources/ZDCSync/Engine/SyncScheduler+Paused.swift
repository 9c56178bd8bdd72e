package import ZDCClientStore

extension SyncScheduler {
  /// Returns whether the user's pushes are paused, whichever process paused them.
  package func isPaused() async throws -> Bool {
    let pause = try await session.database.asyncRead { [session] transaction in
      try transaction.pushPause(localUser: session.localUser)
    }
    await note(pause)
    return pause != nil
  }

  package func note(_ pause: PushPause?) async {
    if (pause != nil) != wasPaused {
      wasPaused.toggle()
      session.activity.tell(wasPaused ? .pushPaused : .pushResumed)
      session.events.post { pause != nil ? .pushPaused(localUserID: $0) : .pushResumed(localUserID: $0) }
    }
    if pause == .abortingUploads { await cancelUploads() }
  }
}
