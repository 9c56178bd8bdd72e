import Foundation

// One node at a time.

extension Bench {
  /// Measures from the transaction until the app learns that the server has stored the node durably.
  func oneByOne() async throws -> [Figure] {
    let server = try await ServerProcess(folder: newFolder())
    let device = try Device(server: server.url, folder: newFolder())
    let (user, _) = try await device.createAccount()
    var times: [Double] = []
    for index in 1...samples {
      let (time, _) = try await seconds {
        try await device.create(["node \(index)"], user: user)
        try await device.app.pushed.wait(until: index)
      }
      times.append(time * 1_000)
    }
    try await device.close()
    var figure = Figure("one-p50", times, beside: try await commitsYardstick(server, commits: 4))
    figure.runs = samples
    return [figure]
  }

  /// Measures from the transaction on A until B's delegate is called. Both run in this process, the server in its own.
  func edits() async throws -> [Figure] {
    let server = try await ServerProcess(folder: newFolder())
    let a = try Device(server: server.url, folder: newFolder())
    let b = try Device(server: server.url, folder: newFolder())
    let (user, words) = try await a.createAccount()
    try await a.create(["note"], user: user)
    try await a.app.pushed.wait(until: 1)
    try await b.loginAndPull(words)
    try await b.app.discovered.wait(until: 1)
    var times: [Double] = []
    for index in 1...samples {
      let (time, _) = try await seconds {
        try await a.edit("note", user: user)
        try await b.app.modified.wait(until: index)
      }
      times.append(time * 1_000)
      // The next edit begins when this one is complete on A too.
      try await a.app.pushed.wait(until: index + 1)
      try await a.settle()
    }
    try await a.close()
    try await b.close()
    let yardstick = try await commitsYardstick(server, commits: 3)
    var figures = [Figure("edit-p50", times, beside: yardstick), Figure("edit-p99", times, beside: yardstick)]
    figures[1].value = percentile(times, 99)
    figures[1].ratio = figures[1].value / yardstick.value
    return figures
  }
}
