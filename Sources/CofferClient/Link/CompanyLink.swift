internal import CofferAPI
internal import CofferPolicy
internal import CofferSystem
internal import Synchronization

/// Holds a device to its company: hears of changes as they are made, fetches what is signed, carries out orders, and says
/// what it did.
///
/// An event only wakes. Whatever it says, the policy, its confirmation and the orders are fetched and verified anew. While
/// nobody answers, the device decides by what it has, until its grace ends; the link tries again, after longer and longer
/// times up to five minutes.
public struct CompanyLink: Sendable {
  /// A stream on which nothing comes for so long is closed, and opened again. The server sends a sign of life every 25
  /// seconds.
  static let silence = Duration.seconds(60)

  private let device: any LinkedDevice
  let client: PolicyClient
  private let pace: any LinkPace
  private let bell: LinkBell
  private let tell: @Sendable (LinkEvent) -> Void

  /// - Parameters:
  ///   - client: how the server is spoken to.
  ///   - bell: wakes it as an event of the company does.
  ///   - tell: hears of everything, on any thread.
  public init(
    _ device: any LinkedDevice, client: PolicyClient = PolicyClient(), pace: any LinkPace = SystemPace(),
    bell: LinkBell = LinkBell(), tell: @escaping @Sendable (LinkEvent) -> Void
  ) {
    self.bell = bell
    self.device = device
    self.client = client
    self.pace = pace
    self.tell = tell
  }

  /// Runs until the task is cancelled, or the device was wiped.
  public func run() async {
    var backOff = BackOff()
    let memory = LinkMemory()
    while !Task.isCancelled {
      var failure: ClientError?
      do throws(ClientError) {
        try await session(memory)
      } catch {
        failure = error
      }
      // Also where it is to end: nobody else knows of it.
      if memory.isWiped { return tell(.wiped) }
      if Task.isCancelled { return }
      // A stream ends by itself when its token does. What fails each time is not tried at once each time.
      if memory.takeAnswered() { backOff.reset() }
      let wait = backOff.next(asked: memory.retry, chance: pace.chance())
      tell(.disconnected(failure, retryAfter: wait / .seconds(1)))
      guard (try? await pace.wait(wait)) != nil else { return }
    }
  }

  /// One connection: from the token to the end of the stream.
  private func session(_ memory: LinkMemory) async throws(ClientError) {
    let work = LinkWork(device: device, client: client, memory: memory, tell: tell)
    let enrolment = try await work.local { try device.enrolment() }
    let key = try await work.local { try device.deviceKey() }
    let server = try ServerAddress(enrolment.server)
    let pinned = try PinnedCertificate(optional: enrolment.pinnedCertificate)
    try await Connection.with(server, pinned: pinned, timeout: client.timeout) {
      connection async throws(ClientError) in
      let token = try await client.token(for: enrolment, deviceKey: key, over: connection)
      try await hear(memory, over: connection, token: token) { () async throws(ClientError) in
        try await work.perform(over: connection, token: token)
      }
    }
  }

  /// Opens the stream, and calls `work` once it is open and after each event. Events that come while it works are one
  /// when it has done: whatever they were, it fetches what is there then.
  private func hear(
    _ memory: LinkMemory, over connection: Connection, token: String,
    _ work: @escaping @Sendable () async throws(ClientError) -> Void
  ) async throws(ClientError) {
    let (calls, caller) = AsyncStream.makeStream(of: String.self, bufferingPolicy: .bufferingNewest(1))
    let pulse = Pulse()
    defer { bell.connect(nil) }
    do {
      try await withThrowingTaskGroup(of: Void.self) { group in
        group.addTask {
          var headers = [("authorization", "Bearer \(token)")]
          if let last = memory.lastEventID { headers.append(("last-event-id", last)) }
          var parser = EventParser()
          try await connection.stream("/v1/device/events", headers: headers) {
            pulse.beat()
            tell(.connected)
            bell.connect(caller)
            // What happened before the stream was open, nobody tells.
            caller.yield("")
          } _: { bytes in
            pulse.beat()
            for event in try parser.take(bytes) { caller.yield(event.id) }
            memory.retry = parser.retry.map { .milliseconds($0) }
          }
        }
        group.addTask {
          for await id in calls {
            try await work()
            if !id.isEmpty { memory.lastEventID = id }
          }
        }
        group.addTask {
          while true {
            let before = pulse.count
            try await pace.wait(Self.silence)
            if pulse.count == before { throw ClientError.unreachable }
          }
        }
        defer { group.cancelAll() }
        // Whichever ends first ends the connection.
        try await group.next()
      }
    } catch {
      throw ClientError(exchange: error)
    }
  }
}

/// What stays of a connection for the next one.
final class LinkMemory: Sendable {
  private struct State {
    var lastEventID: String?
    var retry: Duration?
    var hasAnswered = false
    var isWiped = false
    var sentReport: DeviceReport?
    var isSpentOfDecisions = false
    var locks: Set<String> = []
  }

  private let state = Mutex(State())

  var lastEventID: String? {
    get { state.withLock { $0.lastEventID } }
    set { state.withLock { $0.lastEventID = newValue } }
  }
  var retry: Duration? {
    get { state.withLock { $0.retry } }
    set { state.withLock { $0.retry = newValue } }
  }
  var isWiped: Bool {
    get { state.withLock { $0.isWiped } }
    set { state.withLock { $0.isWiped = newValue } }
  }
  /// What the company was told last of this device.
  var sentReport: DeviceReport? {
    get { state.withLock { $0.sentReport } }
    set { state.withLock { $0.sentReport = newValue } }
  }

  /// The company has as many decisions of this device as it keeps.
  var isSpentOfDecisions: Bool {
    get { state.withLock { $0.isSpentOfDecisions } }
    set { state.withLock { $0.isSpentOfDecisions = newValue } }
  }

  /// Whether this process has not carried out the order to lock before.
  func note(lock order: String) -> Bool { state.withLock { $0.locks.insert(order).inserted } }

  /// The company confirmed its policy, and all was said and done that there was.
  func noteAnswer() { state.withLock { $0.hasAnswered = true } }

  /// Whether it did since this was asked last.
  func takeAnswered() -> Bool {
    state.withLock { state in
      defer { state.hasAnswered = false }
      return state.hasAnswered
    }
  }
}

/// Counts what comes on a stream.
private final class Pulse: Sendable {
  private let beats = Atomic(0)

  var count: Int { beats.load(ordering: .relaxed) }
  func beat() { beats.wrappingAdd(1, ordering: .relaxed) }
}
