internal import Synchronization

/// Counts the server's activity, for `/metrics` in Prometheus' text format. No label contains an id.
final class ServerMetrics: Sendable {
  struct RequestKey: Hashable, Comparable {
    var method: String
    var route: String
    var status: Int

    static func < (a: RequestKey, b: RequestKey) -> Bool {
      (a.route, a.method, a.status) < (b.route, b.method, b.status)
    }
  }

  /// Values in the text that other components count.
  struct Gauges {
    var eventStreams: Int
    var writes: UInt64
    var writeGroups: UInt64
    var writeWaitSeconds: Double
  }

  private struct State {
    var requests: [RequestKey: UInt64] = [:]
    var requestSeconds: [String: Double] = [:]
    var commits: UInt64 = 0
    var operations: UInt64 = 0
    var openRequests = 0
    var bytesIn: UInt64 = 0
    var bytesOut: UInt64 = 0
  }

  private let state = Mutex(State())

  /// Counts the start of a request; `countRequest` counts its end.
  func openRequest() { state.withLock { $0.openRequests += 1 } }

  func countRequest(_ key: RequestKey, seconds: Double) {
    state.withLock { state in
      state.openRequests -= 1
      state.requests[key, default: 0] += 1
      state.requestSeconds[key.route, default: 0] += seconds
    }
  }

  func countCommits(_ commits: Int, operations: Int) {
    state.withLock { state in
      state.commits += UInt64(commits)
      state.operations += UInt64(operations)
    }
  }

  func countBytes(in received: Int = 0, out sent: Int = 0) {
    state.withLock { state in
      state.bytesIn += UInt64(received)
      state.bytesOut += UInt64(sent)
    }
  }

  func text(_ gauges: Gauges) -> String {
    let state = state.withLock { $0 }
    var out = Exposition()
    out.family("zdc_requests_total", "counter", "Requests by route, method and status.")
    for (key, count) in state.requests.sorted(by: { $0.key < $1.key }) {
      let labels = "{route=\"\(key.route)\",method=\"\(key.method)\",status=\"\(key.status)\"}"
      out.sample("zdc_requests_total" + labels, "\(count)")
    }
    out.family("zdc_request_seconds_total", "counter", "Time until the answer began, by route.")
    for (route, seconds) in state.requestSeconds.sorted(by: { $0.key < $1.key }) {
      out.sample("zdc_request_seconds_total{route=\"\(route)\"}", "\(seconds)")
    }
    out.single("zdc_commits_total", "counter", "Zone commits accepted.", "\(state.commits)")
    out.single("zdc_operations_total", "counter", "Operations in accepted commits.", "\(state.operations)")
    out.single("zdc_received_bytes_total", "counter", "Bytes of request bodies.", "\(state.bytesIn)")
    out.single("zdc_sent_bytes_total", "counter", "Bytes of answers, as they are sent.", "\(state.bytesOut)")
    // The request for the metrics itself is not counted.
    out.single("zdc_open_requests", "gauge", "Requests in progress.", "\(state.openRequests - 1)")
    out.single("zdc_event_streams", "gauge", "Open event streams.", "\(gauges.eventStreams)")
    out.single("zdc_writes_total", "counter", "Write transactions.", "\(gauges.writes)")
    out.single(
      "zdc_write_groups_total", "counter", "Commits to disk, which write transactions share.", "\(gauges.writeGroups)")
    out.single(
      "zdc_write_wait_seconds_total", "counter", "Time that writes waited for their turn.",
      "\(gauges.writeWaitSeconds)")
    return out.text
  }
}

/// Prometheus' text format, version 0.0.4.
private struct Exposition {
  var text = ""

  mutating func family(_ name: String, _ type: String, _ help: String) {
    text += "# HELP \(name) \(help)\n# TYPE \(name) \(type)\n"
  }

  mutating func sample(_ name: String, _ value: String) { text += "\(name) \(value)\n" }

  mutating func single(_ name: String, _ type: String, _ help: String, _ value: String) {
    family(name, type, help)
    sample(name, value)
  }
}
