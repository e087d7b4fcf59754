internal import NIOCore
internal import Synchronization

/// How far a company's policy and a device's orders are: what an event tells, and what `Last-Event-ID` brings back.
struct EventPosition: Equatable, Sendable, CustomStringConvertible {
  var revision: Int64
  /// The number of the device's newest command.
  var command: Int64

  init(revision: Int64, command: Int64) {
    self.revision = revision
    self.command = command
  }

  /// Nil for what this server never sent.
  init?(_ text: String) {
    let parts = text.split(separator: ".", omittingEmptySubsequences: false)
    guard text.utf8.count <= 40, parts.count == 2, let revision = Int64(parts[0]), let command = Int64(parts[1]) else {
      return nil
    }
    self.init(revision: revision, command: command)
  }

  var description: String { "\(revision).\(command)" }
}

/// One open stream. However much happens while its device does not read, it remembers only the newest position: what
/// the stream would have told meanwhile is all in the signed policy that the device fetches.
final class Subscriber: Sendable {
  enum Signal: Equatable {
    case moved(EventPosition)
    case heartbeat
    case ended
  }

  private struct State {
    /// What the device was told, or is being told now.
    var told: EventPosition
    /// What it has to be told beyond that.
    var position: EventPosition
    var isHeartbeatDue = false
    /// What was told is to be told once more.
    var isRepeated = false
    var isEnded = false
    /// When the write under way began, by the hub's clock.
    var writingSince: Int64?
    var waiting: CheckedContinuation<Signal, Never>?

    /// What to tell next; nil is nothing.
    mutating func take() -> Signal? {
      if isEnded { return .ended }
      if position != told || isRepeated {
        told = position
        isRepeated = false
        isHeartbeatDue = false
        return .moved(position)
      }
      guard isHeartbeatDue else { return nil }
      isHeartbeatDue = false
      return .heartbeat
    }
  }

  let tenant: String
  let device: String
  /// So that the beats of many streams do not fall together.
  let phase: Int64
  private let channel: any Channel
  private let state: Mutex<State>

  /// - Parameter told: what the device knows already, by its `Last-Event-ID`.
  init(tenant: String, device: String, told: EventPosition?, channel: any Channel) {
    self.tenant = tenant
    self.device = device
    self.channel = channel
    phase = Int64.random(in: 0..<EventHub.heartbeat)
    let told = told ?? EventPosition(revision: -1, command: -1)
    state = Mutex(State(told: told, position: told))
  }

  /// Waits for something to tell. One caller at a time.
  func next() async -> Signal {
    await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        let signal = state.withLock { state -> Signal? in
          if let signal = state.take() { return signal }
          state.waiting = continuation
          return nil
        }
        if let signal { continuation.resume(returning: signal) }
      }
    } onCancel: {
      end()
    }
  }

  /// Where things are now, as the store says: also behind what a device says it was told, by another server's store.
  func start(at position: EventPosition) {
    change { state in
      // What happened since the store was read is newer.
      let isTold = state.position == state.told
      state.position = EventPosition(
        revision: isTold ? position.revision : max(state.position.revision, position.revision),
        command: isTold ? position.command : max(state.position.command, position.command))
    }
  }

  func move(revision: Int64) { change { $0.position.revision = max($0.position.revision, revision) } }
  func move(command: Int64) { change { $0.position.command = max($0.position.command, command) } }
  func repeatPosition() { change { $0.isRepeated = true } }
  func beat() { change { $0.isHeartbeatDue = true } }
  func end() { change { $0.isEnded = true } }

  /// Ends a stream whose device does not read: what is being written to it would never be taken.
  func abandon() {
    end()
    channel.close(mode: .all, promise: nil)
  }

  /// Notes for how long a write has been under way; nil is that none is.
  func noteWriting(since time: Int64?) { state.withLock { $0.writingSince = time } }
  var writingSince: Int64? { state.withLock { $0.writingSince } }

  private func change(_ body: (inout State) -> Void) {
    let (waiting, signal) = state.withLock { state -> (CheckedContinuation<Signal, Never>?, Signal?) in
      body(&state)
      guard let waiting = state.waiting, let signal = state.take() else { return (nil, nil) }
      state.waiting = nil
      return (waiting, signal)
    }
    if let waiting, let signal { waiting.resume(returning: signal) }
  }
}
