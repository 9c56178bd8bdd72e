internal import ZDCClientStore

/// Returns the error that an app receives: its own one, or one of the framework's public types.
package func publicError(_ error: any Error) -> any Error { translated(DelegateError.unwrap(error)) }
