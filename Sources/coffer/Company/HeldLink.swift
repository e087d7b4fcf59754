internal import CofferClient
internal import CofferContainer
internal import CofferPolicy
internal import CofferSystem
internal import Foundation
internal import Synchronization

/// The link of an open vault with its company: one for each vault that is held, by the agent or by a command that stays.
final class HeldLink: Sendable {
  /// What is uploaded as the device's log: the newest lines of this process.
  static let ring = LogRing(lines: 1_000, bytes: 400)

  private let container: Container
  private let device: HeldDevice
  private let log = HeldLink.ring.log(label: "coffer.link")
  private let didWipe: @Sendable () -> Void
  private let bell = LinkBell()
  private let state = Mutex(State())

  private struct State {
    var task: Task<Void, Never>?
    var isOver = false
    var isConnected = false
    /// The newest confirmation of this connection.
    var confirmed: LinkEvent?
    var watchers: [ObjectIdentifier: LinkWatcher] = [:]
  }

  /// - Parameters:
  ///   - path: the vault's folder, absolute, as that of its key store.
  ///   - didWipe: called once the vault's keys are destroyed by order: the vault is to be given back, and the rest removed.
  init(
    _ container: Container, mounts: HeldMounts?, path: String, keyStorePath: String,
    didWipe: @escaping @Sendable () -> Void
  ) {
    self.container = container
    self.didWipe = didWipe
    device = HeldDevice(container, mounts: mounts, path: path, keyStorePath: keyStorePath, ring: Self.ring)
  }

  /// Nil where the vault belongs to no company.
  var isConnected: Bool? { state.withLock { $0.task == nil ? nil : $0.isConnected } }

  /// Begins, where the vault belongs to a company and nothing has begun.
  func start() {
    switch container.enrolment {
    case .enrolled, .outdated: break
    case .notEnrolled, .policyMissing: return
    }
    state.withLock { state in
      guard state.task == nil, !state.isOver else { return }
      state.task = Task.detached { [device, log, bell] in
        await CompanyLink(device, client: PolicyClient(log: log), bell: bell) { [weak self] event in self?.note(event) }
          .run()
      }
    }
  }

  /// Something has changed here that the company is to know.
  func wake() { bell.ring() }

  /// Ends, and returns when nothing of it touches the vault any more. Not to be called by the link itself.
  func stop() {
    let task = state.withLock { state in
      state.isOver = true
      return state.task
    }
    guard let task else { return }
    task.cancel()
    let end = DispatchSemaphore(value: 0)
    Task.detached {
      await task.value
      end.signal()
    }
    end.wait()
  }

  /// Tells `watcher` how things are, and what happens from now on, until it goes.
  func add(_ watcher: LinkWatcher) {
    state.withLock { state in
      state.watchers[ObjectIdentifier(watcher)] = watcher
      if state.isConnected { watcher.add(.connected) }
      if let confirmed = state.confirmed { watcher.add(confirmed) }
    }
  }
  func remove(_ watcher: LinkWatcher) { state.withLock { $0.watchers[ObjectIdentifier(watcher)] = nil } }

  private func note(_ event: LinkEvent) {
    let watchers = state.withLock { state in
      switch event {
      case .connected: state.isConnected = true
      case .confirmed: state.confirmed = event
      case .disconnected, .wiped:
        state.isConnected = false
        state.confirmed = nil
      default: break
      }
      return Array(state.watchers.values)
    }
    log.info("\(public: event.line)")
    for watcher in watchers { watcher.add(event) }
    if event == .wiped { didWipe() }
  }
}

/// Holds what a link tells until somebody reads it.
final class LinkWatcher: @unchecked Sendable {
  private let condition = TimedCondition()
  private var events: [LinkEvent] = []
  /// More than any person reads: one who does not read at all is told the newest.
  private static let limit = 1_000

  func add(_ event: LinkEvent) {
    condition.withLock {
      if events.count == Self.limit { events.removeFirst() }
      events.append(event)
      condition.broadcast()
    }
  }

  /// Waits for what is told next, a tenth of a second at most; nil when nothing was.
  func next() -> LinkEvent? {
    condition.withLock {
      if events.isEmpty { _ = condition.wait(until: .now + .seconds(0.1)) }
      return events.isEmpty ? nil : events.removeFirst()
    }
  }
}

extension LinkEvent {
  /// One line, without anything private.
  var line: String {
    switch self {
    case .connected: "connected"
    case .disconnected(let error, let wait):
      "not connected\(error.map { ": \($0)" } ?? "") (again in \(Int(wait.rounded(.up))) s)"
    case .applied(let revision): "policy revision \(revision) holds"
    case .confirmed(let revision): "policy revision \(revision) is confirmed"
    case .order(let kind, let outcome): "order \(kind.rawValue): \(outcome.rawValue)"
    case .orderRefused(let refusal): "an order was refused: \(refusal)"
    case .auditFault(let fault): fault.sentence
    case .wiped: "wiped by order"
    }
  }
}
