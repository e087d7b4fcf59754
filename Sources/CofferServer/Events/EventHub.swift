internal import Synchronization

/// The open streams of events, by company and device. A change wakes its company's devices and nobody else's.
final class EventHub: Sendable {
  /// Seconds between signs of life on a stream that has nothing to tell: less than what middle boxes close idle
  /// connections after.
  static let heartbeat: Int64 = 25
  /// Seconds after which a device that does not take what is written to it is let go.
  static let patience: Int64 = 30

  private struct State {
    /// One for each device: a new stream takes the place of the old one.
    var streams: [String: [String: Subscriber]] = [:]
    var isClosed = false
    var clock: Int64 = 0
  }

  private let state = Mutex(State())

  /// Adds a stream; `false` when the server is about to stop.
  func add(_ subscriber: Subscriber) -> Bool {
    let (isAdded, replaced) = state.withLock { state -> (Bool, Subscriber?) in
      guard !state.isClosed else { return (false, nil) }
      return (true, state.streams[subscriber.tenant, default: [:]].updateValue(subscriber, forKey: subscriber.device))
    }
    replaced?.end()
    return isAdded
  }

  /// Removes a stream, unless another has taken its place.
  func remove(_ subscriber: Subscriber) {
    state.withLock { state in
      guard state.streams[subscriber.tenant]?[subscriber.device] === subscriber else { return }
      state.streams[subscriber.tenant]?[subscriber.device] = nil
      if state.streams[subscriber.tenant]?.isEmpty == true { state.streams[subscriber.tenant] = nil }
    }
  }

  /// Tells all of a company's devices of a new revision.
  func wake(tenant: String, revision: Int64) {
    for subscriber in streams(of: tenant) { subscriber.move(revision: revision) }
  }

  /// Tells one device of a new command.
  func wake(tenant: String, device: String, command: Int64) {
    state.withLock { $0.streams[tenant]?[device] }?.move(command: command)
  }

  /// Tells one device the position that it knows once more, so that it asks for what else there is.
  func wake(tenant: String, device: String) {
    state.withLock { $0.streams[tenant]?[device] }?.repeatPosition()
  }

  /// Ends the stream of a device that has been removed.
  func drop(tenant: String, device: String) { state.withLock { $0.streams[tenant]?[device] }?.end() }

  /// Ends all streams, and lets nobody begin another.
  func close() {
    let all = state.withLock { state -> [Subscriber] in
      state.isClosed = true
      return state.streams.values.flatMap(\.values)
    }
    for subscriber in all { subscriber.end() }
  }

  /// Seconds that this hub has counted. Streams note by it when a write began.
  var clock: Int64 { state.withLock { $0.clock } }

  /// A second has passed: beats for a part of the streams, and lets go of those that are not read.
  func tick() {
    let (all, clock) = state.withLock { state -> ([Subscriber], Int64) in
      state.clock += 1
      return (state.streams.values.flatMap(\.values), state.clock)
    }
    for subscriber in all {
      if let since = subscriber.writingSince {
        if clock - since > Self.patience { subscriber.abandon() }
      } else if (subscriber.phase + clock).isMultiple(of: Self.heartbeat) {
        subscriber.beat()
      }
    }
  }

  var count: Int { state.withLock { $0.streams.values.reduce(0) { $0 + $1.count } } }
  /// Streams on which a write is under way.
  var writing: Int {
    state.withLock { $0.streams.values.flatMap(\.values).count { $0.writingSince != nil } }
  }

  var isClosed: Bool { state.withLock { $0.isClosed } }

  private func streams(of tenant: String) -> [Subscriber] {
    state.withLock { Array(($0.streams[tenant] ?? [:]).values) }
  }
}
