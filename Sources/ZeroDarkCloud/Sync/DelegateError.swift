/// An error of the app's own, told apart from the framework's while it is on its way to whoever called.
struct DelegateError: Error {
  let underlying: any Error

  /// What a caller of the framework sees.
  static func unwrap(_ error: any Error) -> any Error {
    (error as? DelegateError)?.underlying ?? error
  }
}

extension SyncSession {
  /// Calls the app.
  ///
  /// - Throws: ``DelegateError``.
  func tell(_ body: (any ZeroDarkCloudDelegate) throws -> Void) throws {
    let delegate = delegate()
    do { try body(delegate) } catch { throw DelegateError(underlying: error) }
  }
}
