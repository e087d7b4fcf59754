internal import CofferContainer
internal import CofferKeys
internal import CofferPolicy
internal import CofferSystem
internal import Foundation
internal import Synchronization

/// The agent's loop: takes connections, reads requests, and hears what clients and signals say. It waits for nothing but
/// all of them at once; what takes time has a thread of its own.
final class AgentServer {
  typealias Instant = ContinuousClock.Instant

  /// Commands that run at a time; more wait, each in its turn, until one ends.
  static let commandLimit = 64
  /// Commands that wait at a time; more are sent away.
  static let waitingLimit = 64
  /// Clients that wait for the lock at a time, and such that wait for what the disk says of the vault; more are sent away.
  static let watcherLimit = 32
  /// Connections at a time. So many more than there are commands that a lock, a stop or a question always gets through.
  static let connectionLimit = commandLimit + waitingLimit + 2 * watcherLimit + 64
  /// How long a request may take to come in.
  static let requestTime = Duration.seconds(10)
  /// How long commands may take to end when the agent shall; their files are then taken back by the next opening.
  static let endTime = Duration.seconds(5)
  /// A sleeping machine does not count in poll(2)'s time, but in that of the idle lock: looked at once a minute. So long may nobody
  /// find the agent whose socket was removed.
  static let longestWait = Duration.seconds(60)
  /// How long a look at who waits to be let in is put off.
  private static let restTime = Duration.milliseconds(50)

  private let vault: HeldVault
  private let bell: Bell
  private let idleMinutes: Double
  private let memoryLocked: Bool
  private let now: () -> Instant
  private let lookAfterListener: @Sendable (_ tell: (LocalSocket) -> Void) -> Void
  private let removeSocket: () -> Void

  private var listener: LocalSocket?
  private var connections: [Int: Connection] = [:]
  private var nextNumber = 0
  /// Commands that wait for others to end, the first one first.
  private var waiting: [(number: Int, run: @Sendable () -> ServedRun)] = []
  private var idle: IdleClock
  private var mountUses = 0
  private var lastLook: Instant
  private var lastRecheck: Instant
  /// Set where there was no descriptor for a client: until when no other look is taken at who waits to be let in.
  private var rest: Instant?
  /// Set when the agent is to end: until when commands may.
  private var end: Instant?

  private struct Connection {
    let link: AgentConnection
    /// Nil once the request has come.
    var incoming: (request: IncomingRequest, descriptors: [OwnedDescriptor], deadline: Instant)?
    var role = Role.none
    /// A thread works for it.
    var isBusy = false
    /// What keeps it busy is the answer, no more what was asked for.
    var isAnswering = false
    /// It keeps the vault from being locked for want of use.
    var isUser = false
    var hasHungUp = false
  }

  private enum Role { case none, command, stop, status, untilLocked }

  /// - Parameter lookAfterListener: tells of another listener, where nobody finds the one that there is. May take time.
  init(
    _ vault: HeldVault, listener: LocalSocket, bell: Bell, idleMinutes: Double, memoryLocked: Bool,
    now: @escaping () -> Instant = { .now },
    lookAfterListener: @escaping @Sendable (_ tell: (LocalSocket) -> Void) -> Void = { _ in },
    removeSocket: @escaping () -> Void
  ) {
    self.vault = vault
    self.listener = listener
    self.bell = bell
    self.idleMinutes = idleMinutes
    self.memoryLocked = memoryLocked
    self.now = now
    self.lookAfterListener = lookAfterListener
    self.removeSocket = removeSocket
    (lastRecheck, lastLook) = (now(), now())
    idle = IdleClock(limit: idleMinutes > 0 ? .seconds(60 * idleMinutes) : nil, now: now())
  }

  /// Serves until somebody ends the agent; then the vault is closed. The answer is what came of that.
  func run() throws -> AgentAnswer {
    while !isOver {
      idle.limit(to: presentIdleMinutes > 0 ? .seconds(60 * presentIdleMinutes) : nil)
      try step(waiting: wait())
    }
    let answer = vault.close()
    for connection in connections.values where connection.role == .stop { connection.link.send(answer) }
    return answer
  }

  /// The stricter of what the person and the company ask for. A policy that changes is looked at once a minute.
  private var presentIdleMinutes: Double {
    guard let most = vault.container.managedSettings.lockAfterMinutes.map(Double.init) else { return idleMinutes }
    return idleMinutes > 0 ? min(idleMinutes, most) : most
  }

  private var isOver: Bool { end.map { now() >= $0 || !connections.values.contains(where: \.isBusy) } ?? false }

  private func wait() -> Duration {
    let now = now()
    var wait = min(Self.longestWait, idle.remaining(now: now) ?? Self.longestWait)
    if let end { wait = min(wait, end - now) }
    if let rest { wait = min(wait, rest - now) }
    for case let incoming? in connections.values.map(\.incoming) { wait = min(wait, incoming.deadline - now) }
    return max(.zero, wait)
  }

  /// Waits once, and does what there is to do.
  func step(waiting time: Duration) throws {
    var sources: [(descriptor: OwnedDescriptor, number: Int?)] = [(bell.descriptor, nil)]
    if let present = rest, now() >= present { rest = nil }
    if let listener, connections.count < Self.connectionLimit, rest == nil {
      sources.append((listener.descriptor, nil))
    }
    for (number, connection) in connections where !connection.hasHungUp {
      sources.append((connection.link.socket.descriptor, number))
    }
    // Rounded up, so that the last part of a millisecond is not spent turning.
    let milliseconds = Int32(clamping: Int64(time / .milliseconds(1)) + (time > .zero ? 1 : 0))
    let ready = try Readiness.wait(for: sources.map(\.descriptor), milliseconds: milliseconds)
    for (source, isReady) in zip(sources, ready) where isReady {
      if let number = source.number {
        read(number)
      } else if source.descriptor === bell.descriptor {
        try hearBell()
      } else {
        try accept()
      }
    }
    // What a thread did may be known before its ringing is read.
    let now = now()
    for (number, connection) in connections {
      if let incoming = connection.incoming, now >= incoming.deadline { connections[number] = nil }
      if connection.role == .untilLocked, vault.present.state == .locked { answerStatus(number) }
    }
    lookAfterMounts(now)
    if idle.isDue(now: now) { lockInBackground(graceSeconds: vault.graceSeconds) }
  }

  /// Whoever works in a mount uses the vault. And the policy that allowed it may have become too old.
  private func lookAfterMounts(_ now: Instant) {
    let uses = vault.mounts.uses
    if uses != mountUses {
      mountUses = uses
      idle.touch(now: now, lastLook: lastLook)
    }
    lastLook = now
    guard now - lastRecheck >= Self.longestWait else { return }
    // Where there is no thread for it, soon again.
    if (try? NewThread.start { [vault] in vault.mounts.recheck() }) != nil { lastRecheck = now }
    lookAfterSocket()
  }

  /// On a thread of its own, and not where there is none: a disk may hold it up.
  private func lookAfterSocket() {
    _ = try? NewThread.start { [bell, lookAfterListener] in lookAfterListener { bell.ring(.listens($0)) } }
  }

  // MARK: Connections

  /// Whether somebody waited.
  @discardableResult
  private func accept() throws -> Bool {
    let accepted: LocalSocket?
    do throws(SystemError) {
      accepted = try listener?.accept()
    } catch  where error.isShortage {
      // It stays readable meanwhile.
      rest = now() + Self.restTime
      return false
    }
    guard let socket = accepted else { return false }
    // Another user's is closed without a word.
    guard (try? socket.peer()) == ProcessHardening.userID else { return true }
    nextNumber += 1
    connections[nextNumber] = Connection(
      link: AgentConnection(socket), incoming: (IncomingRequest(), [], now() + Self.requestTime))
    return true
  }

  /// Clients come elsewhere from now on.
  private func listen(at socket: LocalSocket) throws {
    guard listener != nil else { return }
    // Who came to the former one is not to be sent away.
    while connections.count < Self.connectionLimit, try accept() {}
    listener = socket
  }

  private func read(_ number: Int) {
    guard let connection = connections[number] else { return }
    var descriptors: [OwnedDescriptor] = []
    withUnsafeTemporaryAllocation(byteCount: 16 << 10, alignment: 16) { buffer in
      // It may be a part of a passcode.
      defer { overwrite(buffer) }
      let received: Int
      do {
        guard let count = try connection.link.socket.receive(into: buffer, waits: false, descriptors: &descriptors)
        else { return }
        received = count
      } catch {
        return hangUp(number)
      }
      guard received > 0 else { return hangUp(number) }
      let bytes = UnsafeRawBufferPointer(rebasing: buffer[..<received])
      if connection.incoming != nil { return take(bytes, descriptors, number) }
      // A client that sends more than it may is not listened to.
      guard descriptors.isEmpty, connection.role == .command else { return hangUp(number) }
      connection.link.hear(bytes)
    }
  }

  /// The client has gone, or is not to be served any more.
  private func hangUp(_ number: Int) {
    guard let connection = connections[number] else { return }
    connection.link.hangUp()
    endUse(number)
    waiting.removeAll { $0.number == number }
    if connection.isBusy { connections[number]?.hasHungUp = true } else { connections[number] = nil }
  }

  /// A command has ended, or there is nobody any more for whom it runs.
  private func endUse(_ number: Int) {
    guard connections[number]?.isUser == true else { return }
    connections[number]?.isUser = false
    idle.end(now: now())
  }

  private func take(_ bytes: UnsafeRawBufferPointer, _ descriptors: [OwnedDescriptor], _ number: Int) {
    guard var incoming = connections[number]?.incoming else { return }
    incoming.descriptors += descriptors
    do {
      guard incoming.descriptors.count <= AgentRequest.descriptorLimit else { throw MalformedBytes() }
      guard let request = try incoming.request.take(bytes) else {
        connections[number]?.incoming = incoming
        return
      }
      connections[number]?.incoming = nil
      try serve(request, incoming.descriptors, number)
    } catch {
      connections[number] = nil
    }
  }

  // MARK: Requests

  private func serve(_ request: AgentRequest, _ descriptors: [OwnedDescriptor], _ number: Int) throws {
    guard let link = connections[number]?.link, end == nil else {
      connections[number] = nil
      return
    }
    guard request.folder == vault.identity || request.isForAnyVault else {
      link.send(.notServed)
      connections[number] = nil
      return
    }
    if case .run(let command) = request.body {
      guard command.isWhole(with: descriptors.count) else { throw MalformedBytes() }
      connections[number]?.role = .command
      guard waiting.count < Self.waitingLimit else {
        link.send(.outcome(code: 75, text: "the agent has too many commands to do; try again when some have ended"))
        connections[number] = nil
        return
      }
      // What the client gave is looked at by the command's own thread: it may be of a file system that does not answer.
      waiting.append((number, { [vault] in ServedRun(command, descriptors, vault, link) }))
      return startWaiting()
    }
    guard descriptors.isEmpty else { throw MalformedBytes() }
    switch request.body {
    case .run: break
    case .status(let untilLocked):
      guard untilLocked else { return answerStatus(number) }
      guard connections.values.count(where: { $0.role == .untilLocked }) < Self.watcherLimit else {
        link.send(.outcome(code: 75, text: "too many programs wait for the lock; try again when some have ended"))
        connections[number] = nil
        return
      }
      connections[number]?.role = .untilLocked
    case .unlock(let passcode): start(number) { [vault] in vault.unlock(passcode) }
    case .lock(let immediately): start(number, alsoHere: true) { [vault] in vault.lock(immediately: immediately) }
    case .stop(let isForced):
      connections[number]?.role = .stop
      if isForced { beginEnd() } else { storeBeforeEnd(number) }
    }
  }

  /// Ends where all can be stored that waits in memory, and else says why not: it would be lost.
  private func storeBeforeEnd(_ number: Int) {
    guard let link = connections[number]?.link else { return }
    connections[number]?.isBusy = true
    inBackground { [vault, bell] in
      guard let refusal = vault.refusalToEnd() else { return bell.ring(.stored(number)) }
      link.send(refusal)
      bell.ring(.finished(number))
    }
  }

  /// Starts as many commands as may run.
  private func startWaiting() {
    while runningCount < Self.commandLimit, !waiting.isEmpty {
      let (number, run) = waiting.removeFirst()
      guard let link = connections[number]?.link else { continue }
      link.send(.accepted)
      connections[number]?.isUser = true
      idle.begin()
      start(number) { [bell] in run().perform(noteIdleness: { bell.ring(.idle(number)) }) }
    }
  }

  private var runningCount: Int { connections.values.count { $0.role == .command && $0.isBusy && !$0.isAnswering } }

  /// Does something that takes time, and then answers.
  ///
  /// - Parameter alsoHere: it is not put off where the system has no thread for it, though nobody else is heard meanwhile.
  private func start(_ number: Int, alsoHere: Bool = false, _ body: @escaping @Sendable () -> AgentAnswer) {
    guard let link = connections[number]?.link else { return }
    connections[number]?.isBusy = true
    func answer(_ body: @escaping @Sendable () -> AgentAnswer) -> @Sendable () -> Void {
      { [bell] in
        let answer = body()
        // Before the client knows: who then asks what runs is not told of this.
        bell.ring(.answering(number))
        link.send(answer)
        bell.ring(.finished(number))
      }
    }
    do {
      try NewThread.start(answer(body))
    } catch {
      if alsoHere { return answer(body)() }
      answer {
        .outcome(code: 75, text: "the system gives the agent no more threads; end other programs and try again")
      }()
    }
  }

  /// Runs what must not be put off: here where the system has no thread for it.
  private func inBackground(_ body: @escaping @Sendable () -> Void) {
    do { try NewThread.start(body) } catch { body() }
  }

  /// Says what the agent knows by now, and what the disk says of the vault: on a thread of its own, for that may hold it up.
  private func answerStatus(_ number: Int) {
    guard let link = connections[number]?.link else { return }
    guard connections.values.count(where: { $0.role == .status }) < Self.watcherLimit else {
      link.send(
        .outcome(code: 75, text: "too many programs ask how the agent is; its disk does not answer, or is slow"))
      connections[number] = nil
      return
    }
    connections[number]?.role = .status
    connections[number]?.isBusy = true
    let (state, since) = vault.present
    let (idleMinutes, commands) = (presentIdleMinutes, runningCount)
    inBackground { [vault, bell, memoryLocked] in
      let status = AgentStatus(
        running: true, process: ProcessHardening.processID, vaultID: vault.container.id.description, state: state,
        since: since.formatted(.iso8601), idleLockMinutes: idleMinutes, graceSeconds: vault.graceSeconds,
        commands: commands, readOnly: vault.container.isReadOnly,
        memoryLocked: memoryLocked, coreDumpsOff: ProcessHardening.isWithoutCoreDumps, mounts: vault.mounts.places,
        mountDetails: vault.mounts.details, folder: vault.presentPath,
        folderIdentity: vault.identity, waitsForRoom: vault.container.waitsForRoom,
        pagesLost: vault.mounts.loss != nil,
        company: vault.link.isConnected.map { $0 ? "connected" : "offline" },
        escrowKeyFingerprint: vault.container.sealedCompanyEscrowKey.map(EscrowNotice.fingerprint),
        auditFault: vault.container.auditFault?.sentence)
      if let text = try? JSONEncoder().encode(status) {
        link.send(.outcome(code: 0, text: String(decoding: text, as: UTF8.self)))
      }
      bell.ring(.finished(number))
    }
  }

  // MARK: The bell

  private func hearBell() throws {
    for event in bell.events() {
      switch event {
      case .finished(let number):
        endUse(number)
        connections[number] = nil
        startWaiting()
      case .answering(let number): connections[number]?.isAnswering = true
      case .idle(let number): endUse(number)
      case .stored(let number):
        connections[number]?.isBusy = false
        beginEnd()
      case .wiped: beginEnd()
      case .listens(let socket): try listen(at: socket)
      case .lockChanged:
        if vault.present.state == .unlocked { idle.restart(now: now()) }
        // The policy may allow mounts to a vault that is unlocked, and to no other. What is written has the grace period.
        if vault.present.state == .locked { inBackground { [vault] in vault.mounts.recheck() } }
      case .signal(SignalRelay.hangUp), .signal(SignalRelay.user1):
        lockAndStore()
        lookAfterSocket()
      case .signal: beginEnd()
      }
    }
  }

  private func lockInBackground(graceSeconds: Double) {
    inBackground { [vault] in vault.container.lock(graceSeconds: graceSeconds) }
  }

  /// Also where it is locked already: what waits is stored, for whoever hangs up may take the power next.
  private func lockAndStore() {
    inBackground { [vault] in
      vault.container.lock(graceSeconds: 0)
      // What finds no room the kernel would lose.
      if vault.container.hasRoom(forBytes: vault.mounts.mappedByteCount) { vault.mounts.bringPagesBack() }
      try? vault.container.commit()
    }
  }

  /// Nobody is let in any more, and what runs takes back what it has begun.
  private func beginEnd() {
    guard end == nil else { return }
    end = now() + Self.endTime
    removeSocket()
    listener = nil
    // Nothing of these was done.
    for (number, _) in waiting { connections[number] = nil }
    waiting = []
    for connection in connections.values where connection.role == .command { connection.link.hangUp() }
    for (number, connection) in connections where connection.incoming != nil { connections[number] = nil }
  }
}

/// Where threads and signals tell the loop that something has happened.
final class Bell: Sendable {
  enum Event: Sendable {
    /// What was asked for is done, and the answer is on its way.
    case answering(Int)
    case finished(Int)
    /// The vault was locked or unlocked.
    case lockChanged
    /// A command only watches, and does not keep the vault from being locked for want of use.
    case idle(Int)
    /// The agent is to end, and what waited in memory is stored.
    case stored(Int)
    /// The vault was wiped by its company's order.
    case wiped
    /// Clients find the agent here from now on.
    case listens(LocalSocket)
    case signal(Int32)
  }

  /// Readable while something is to be heard.
  let descriptor: OwnedDescriptor
  private let handle: OwnedDescriptor
  private let waiting = Mutex<[Event]>([])

  init() throws { (descriptor, handle) = try OwnedDescriptor.pipe() }

  /// Signals of these numbers ring.
  func ringForSignals(_ numbers: [Int32]) { SignalRelay.start(numbers, to: handle) }

  func ring(_ event: Event) {
    waiting.withLock { $0.append(event) }
    // A full pipe is readable, too.
    try? handle.writeAll([0])
  }

  func events() -> [Event] {
    var bytes = [UInt8](repeating: 0, count: 256)
    let count = (try? bytes.withUnsafeMutableBytes { try descriptor.read(into: $0) }) ?? 0
    let signals = bytes[..<count].filter { $0 != 0 }.map { Event.signal(Int32($0)) }
    return signals
      + waiting.withLock { waiting in
        defer { waiting = [] }
        return waiting
      }
  }
}
