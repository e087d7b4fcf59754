internal import Synchronization

/// Counters for operators, in memory. No label holds a company, a device or anything that a client sent.
final class Metrics: Sendable {
  enum Counter: String, CaseIterable {
    case signInsRefused = "coffer_sign_ins_refused_total"
    case signInsLimited = "coffer_sign_ins_limited_total"
    case storeFailures = "coffer_store_failures_total"
  }

  private struct Answer: Hashable {
    let method: String
    let route: String
    let status: Int
  }

  private struct State {
    var answers: [Answer: Int] = [:]
    var counters: [Counter: Int] = [:]
    /// Seconds that requests took, and how many ended within each bound.
    var seconds = 0.0
    var buckets = [Int](repeating: 0, count: Metrics.bounds.count)
    var requests = 0
  }

  private static let bounds = [0.005, 0.025, 0.1, 0.5, 2.5]
  private let state = Mutex(State())

  func count(_ counter: Counter) { state.withLock { $0.counters[counter, default: 0] += 1 } }

  /// - Parameter route: the path as the server's own list has it; never what the client sent.
  func count(method: String, route: String, status: Int, seconds: Double) {
    state.withLock { state in
      state.answers[Answer(method: method, route: route, status: status), default: 0] += 1
      state.requests += 1
      state.seconds += seconds
      for (index, bound) in Self.bounds.enumerated() where seconds <= bound { state.buckets[index] += 1 }
    }
  }

  /// The text format of Prometheus, version 0.0.4.
  func text(gauges: [(name: String, value: Int)]) -> String {
    let state = state.withLock { $0 }
    var lines = ["# TYPE coffer_requests_total counter"]
    lines += state.answers.map { answer, count in
      #"coffer_requests_total{method="\#(answer.method)",route="\#(answer.route)",status="\#(answer.status)"} \#(count)"#
    }.sorted()
    lines.append("# TYPE coffer_request_seconds histogram")
    for (bound, count) in zip(Self.bounds, state.buckets) {
      lines.append(#"coffer_request_seconds_bucket{le="\#(bound)"} \#(count)"#)
    }
    lines.append(#"coffer_request_seconds_bucket{le="+Inf"} \#(state.requests)"#)
    lines.append("coffer_request_seconds_sum \(state.seconds)")
    lines.append("coffer_request_seconds_count \(state.requests)")
    for counter in Counter.allCases {
      lines.append("# TYPE \(counter.rawValue) counter")
      lines.append("\(counter.rawValue) \(state.counters[counter] ?? 0)")
    }
    for gauge in gauges {
      lines.append("# TYPE \(gauge.name) gauge")
      lines.append("\(gauge.name) \(gauge.value)")
    }
    return lines.joined(separator: "\n") + "\n"
  }
}
