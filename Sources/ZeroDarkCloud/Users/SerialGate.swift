/// Runs one body at a time, in the order in which they came.
actor SerialGate {
  private var last: Task<Void, Never>?

  func run<Value: Sendable>(_ body: @escaping @Sendable () async throws -> Value) async throws -> Value {
    let before = last
    let task = Task {
      await before?.value
      return try await body()
    }
    last = Task { _ = await task.result }
    return try await withTaskCancellationHandler {
      try await task.value
    } onCancel: {
      task.cancel()
    }
  }
}
