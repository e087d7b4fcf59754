internal import ArgumentParser
internal import CofferContainer
internal import CofferSystem
internal import Foundation

/// A connection to the agent that holds the vault which a command means.
struct AgentClient {
  private let socket: LocalSocket
  private let folder: FolderIdentity
  /// What the command line says besides to this agent, behind the command's name: what only this process can tell.
  var arguments: [String] = []
  /// Called when the agent has ended the command.
  var didEnd: () -> Void = {}

  private init(socket: LocalSocket, folder: FolderIdentity) { (self.socket, self.folder) = (socket, folder) }

  /// Nil where no agent listens for a vault of this id, or there is no vault at all: the command then does what it does
  /// without one.
  static func connect(_ options: GlobalOptions) throws -> AgentClient? {
    let path = try options.vaultPath
    guard let id = Container.statedID(at: path) else {
      try options.requireReadable()
      return nil
    }
    guard let socket = try AgentPlace.connect(id) else { return nil }
    let client = AgentClient(socket: socket, folder: try FolderIdentity(at: path))
    // Before anything is sent: its socket would keep the descriptors, so that whoever reads from this process would wait for their end.
    try client.requireUnkilled()
    return client
  }

  /// Who serves a mount.
  enum Serving {
    /// This agent, with what it says of itself and of the mount.
    case agent(AgentClient, AgentStatus, AgentStatus.Mount)
    /// None of this user's that is found.
    case nobody
    /// None that answers, and one does not answer soon.
    case unanswered
  }

  /// The agent that serves a mount, whichever vault that shows.
  ///
  /// - Parameters:
  ///   - device: the system's number of it. At one path there may be another one in each name space of mounts.
  ///   - killed: a process that is not asked.
  static func serving(_ device: String, besides killed: Int32 = 0) -> Serving {
    var isUnanswered = false
    for place in AgentPlace.all {
      guard let asked = try? place.connect() else { continue }
      if killed > 0, (try? asked.peerProcess()) == killed { continue }
      let client = AgentClient(socket: asked, folder: .any)
      guard let status = client.briefStatus() else {
        isUnanswered = isUnanswered || !client.hasAnswered(within: 0)
        continue
      }
      guard let identity = status.folderIdentity,
        let mount = status.mountDetails?.first(where: { $0.device == device }),
        let socket = try? place.connect()
      else { continue }
      return .agent(AgentClient(socket: socket, folder: identity), status, mount)
    }
    return isUnanswered ? .unanswered : .nobody
  }

  /// The agent that ``connect(_:)`` finds. Throws where it does not answer soon.
  static func connectBriefly(_ options: GlobalOptions) throws -> AgentClient? {
    guard let asked = try connect(options) else { return nil }
    if asked.briefStatus() == nil, !asked.hasAnswered(within: 0) {
      let process = (try? asked.socket.peerProcess()).flatMap { $0 > 0 ? " (process \($0))" : nil } ?? ""
      throw Failure(
        code: 75,
        text:
          "no vault is seen there, and the agent of the vault that is named\(process) does not answer, which may have one "
          + "there: it may have been stopped; let it go on (kill -CONT), and try again")
    }
    return try connect(options)
  }

  /// Nil where the agent does not answer soon: it may be another's business why.
  private func briefStatus() -> AgentStatus? {
    guard send(AgentRequest(.status(untilLocked: false), of: folder)), hasAnswered(within: Self.briefTime),
      case .outcome(0, let text)? = try? AgentAnswer.receive(from: socket)
    else { return nil }
    return try? JSONDecoder().decode(AgentStatus.self, from: Data(text.utf8))
  }

  /// Whether there is something to read, or nothing will be.
  private func hasAnswered(within milliseconds: Int32) -> Bool {
    (try? Readiness.wait(for: [socket.descriptor], milliseconds: milliseconds)[0]) ?? false
  }

  /// In milliseconds.
  private static let briefTime: Int32 = 2000

  // MARK: Commands

  /// How the agent ended a command.
  enum End {
    case exit(Int32)
    /// As a program that this signal ends.
    case signal(Int32)

    /// Ends this process in the same way.
    func endProcess() throws {
      switch self {
      case .exit(let code): throw ExitCode(code)
      case .signal(let number):
        SignalRelay.endProcess(by: number)
        throw ExitCode(128 + number)
      }
    }
  }

  /// Lets the agent run this process's command; nil where no agent does, and nothing was done.
  static func run(_ command: any ServedCommand) throws -> End? {
    guard let client = try command.agent() else { return nil }
    if let settings = command.agentSettings, settings.areStated, let status = try connect(command.options)?.status() {
      settings.noteDifference(from: status)
    }
    let given = CommandLine.arguments.dropFirst()
    let (description, descriptors) = try description(of: given.prefix(1) + client.arguments + given.dropFirst())
    guard client.send(AgentRequest(.run(description), of: client.folder), descriptors) else { return nil }
    var isAccepted = false
    try client.waitForAnswer()
    while let answer = try client.receive() {
      switch answer {
      case .accepted:
        isAccepted = true
        SignalRelay.start(SignalRelay.interrupts, to: client.socket.descriptor)
      case .ping: try? client.socket.send([0])
      case .end(let signal): return .signal(Int32(signal))
      case .exit(let code, let brokenPipe):
        client.didEnd()
        return brokenPipe ? .signal(SignalRelay.brokenPipe) : .exit(code)
      case .outcome(let code, let text): throw Failure(code: code, text: text)
      case .notServed: return nil
      }
    }
    guard isAccepted else { return nil }
    throw Failure(
      code: 75,
      text:
        "the agent ended before the command did; \(command.adviceWithoutAgent ?? "see what was done, and try again")")
  }

  /// For the agent, which runs the command there.
  private static func currentFolder() throws -> OwnedDescriptor {
    do { return try FileSystem().open(".", .passage) } catch {
      guard error.isDenied else { throw error }
      throw Failure(code: 77, text: "the current folder is not yours to pass; go to another one (cd), and try again")
    }
  }

  /// A command of this process as the agent is asked to run it, with the descriptors that belong to it.
  private static func description(
    of arguments: [String]
  ) throws -> (AgentRequest.Command, [OwnedDescriptor]) {
    let terminal = Terminal.own
    var descriptors = [.standardInput, .standardOutput, .standardError, try currentFolder()]
    if let terminal { descriptors.append(terminal) }
    let fixedCount = descriptors.count
    // Whichever of them is a path: what is none gives the agent a descriptor more that it does not use.
    var places: [GivenPlace] = []
    var indices: [Int32: Int] = [0: 0, 1: 1, 2: 2]
    for path in Set(arguments + arguments.compactMap(\.behindEqualsSign)) {
      switch OwnPlace(path) {
      case .descriptor(let number, let below)?:
        guard let descriptor = OwnedDescriptor.given(number) else { continue }
        if indices[number] == nil {
          guard descriptors.count < fixedCount + AgentRequest.placeLimit else {
            throw Failure.usage(
              "through the agent, paths can name at most \(AgentRequest.placeLimit) open descriptors; "
                + "give fewer at a time")
          }
          indices[number] = descriptors.count
          descriptors.append(descriptor)
        }
        places.append(GivenPlace(path: path, index: UInt8(indices[number] ?? 0), below: below))
      case .terminal? where terminal != nil:
        places.append(GivenPlace(path: path, index: UInt8(AgentRequest.terminalIndex), below: ""))
      case .terminal?, .other?, nil: break
      }
    }
    let command = AgentRequest.Command(
      arguments: arguments, environment: Environment.relevant, hasTerminal: terminal != nil, places: places)
    return (command, descriptors)
  }

  // MARK: Requests

  /// Nil where the agent holds another copy of the vault, or has just ended.
  func request(_ body: AgentRequest.Body) throws -> String? {
    guard send(AgentRequest(body, of: folder)) else { return nil }
    if !body.mayWait { try waitForAnswer(isEnding: body.isEnd) }
    guard let answer = try receive() else { return nil }
    guard case .outcome(let code, let text) = answer else { return nil }
    guard code == 0 else { throw Failure(code: code, text: text) }
    return text
  }

  /// Waits for the next answer; nil where the agent has gone.
  private func receive() throws -> AgentAnswer? {
    while try !Readiness.wait(for: [socket.descriptor], milliseconds: Self.lookingTime)[0] { try requireUnkilled() }
    return try AgentAnswer.receive(from: socket)
  }

  /// Throws where the agent was killed and cannot end: nobody would close the connection.
  private func requireUnkilled() throws {
    let process = (try? socket.peerProcess()) ?? 0
    // One that was killed just now is about to end.
    for _ in 0..<Self.lookCount {
      guard KilledAgent(process) != nil,
        try !Readiness.wait(for: [socket.descriptor], milliseconds: Self.lookingTime / 10)[0]
      else { return }
    }
    if let failure = KilledAgent(process)?.failure { throw failure }
  }

  private static let lookCount = 20

  /// How often whoever waits looks whether the agent was killed, in milliseconds.
  private static let lookingTime: Int32 = 1000

  /// How long an agent is waited for before that is said, in milliseconds.
  private static let patience: Int32 = 5000

  /// Says once where the agent does not answer: a person would not know what they wait for.
  ///
  /// - Parameter isEnding: it was told to end, which takes as long as it takes.
  private func waitForAnswer(isEnding: Bool = false) throws {
    let end = ContinuousClock.now + .milliseconds(Int64(Self.patience))
    while ContinuousClock.now < end {
      if try Readiness.wait(for: [socket.descriptor], milliseconds: Self.lookingTime)[0] { return }
      try requireUnkilled()
    }
    // None where it is in a name space of processes that this one does not see.
    let number = (try? socket.peerProcess()) ?? 0
    let process = number > 0 ? number : nil
    let name = process.map { "the agent (process \($0))" } ?? "the agent"
    if KilledAgent(number) != nil {
      return Output.note(
        "\(name) was killed, and is waited for: what it has under way has to end first. Where it used a mount of its own that was taken out of "
          + "the tree, root ends that: mount -t fusectl none /sys/fs/fuse/connections, and 1 written to the abort of the one that waits there"
      )
    }
    guard !isEnding else {
      return Output.note(
        "\(name) has not ended after \(Self.patience / 1000) seconds, and is waited for: it stores what programs wrote and ends what is "
          + "mounted, or it was stopped\(process.map { " (kill -CONT \($0) lets it go on)" } ?? "")")
    }
    Output.note(
      "\(name) has not answered for \(Self.patience / 1000) seconds, and is waited for: it has other commands to run first, its disk is "
        + "slow, or it was stopped"
        + (process.map {
          " (kill -CONT \($0) lets it go on; kill -KILL \($0) ends it, without storing what programs wrote last)"
        } ?? ""))
  }

  func status(untilLocked: Bool = false) throws -> AgentStatus? {
    try request(.status(untilLocked: untilLocked)).map {
      try JSONDecoder().decode(AgentStatus.self, from: Data($0.utf8))
    }
  }

  /// Lets the agent, where there is one, give the vault back and end: for what must have the vault to itself. What it did
  /// is committed, and the vault's lock is free when it returns. `false` where there was none. Throws where something cannot be
  /// stored: then the agent goes on, unless `isForced`.
  @discardableResult
  static func stopAgent(of options: GlobalOptions, isForced: Bool = false) throws -> Bool {
    guard let client = try connect(options) else { return false }
    return try client.request(.stop(isForced: isForced)) != nil
  }

  /// The same, and tells a person of the programs that used what is mounted.
  static func stopAgentTelling(of options: GlobalOptions, isForced: Bool = false) throws -> Bool {
    // Where the agent does not say what is mounted, it is ended all the same; by force, soon.
    let status = isForced ? try connect(options)?.briefStatus() : try? connect(options)?.status()
    let used = status.map { UsedMounts(at: $0.mounts, servedBy: $0.process) }
    // Also where something was lost: those that have ended are told of, and where the agent goes on none has.
    defer { used?.tell() }
    return try stopAgent(of: options, isForced: isForced)
  }

  /// Whether a vault is found where the command looks for one, whatever its state.
  static func isVaultSeen(_ options: GlobalOptions) throws -> Bool {
    Container.statedID(at: try options.vaultPath) != nil
  }

  /// For who asks after the agent of a vault that is not found: they may mean another one, or it may have been moved, or removed.
  static var noVault: String {
    let strays = Set(AgentPlace.all.compactMap(strayProcess)).sorted().map {
      ". Process \($0) is the agent of a vault that is found no more where it was: name where it lies now, or where it was removed, "
        + "end that agent with kill \($0)"
    }
    return "no vault is found at this place, and so no agent of it; another one is named with --vault" + strays.joined()
  }

  /// The agent at a place, where its vault's folder has been moved or removed, and this name space of processes sees it.
  private static func strayProcess(_ place: AgentPlace) -> Int32? {
    guard let socket = try? place.connect(), let status = AgentClient(socket: socket, folder: .any).briefStatus(),
      status.folder == nil, let process = try? socket.peerProcess(), process > 0
    else { return nil }
    return process
  }

  /// Throws where a process has the vault open that is not reached as an agent: nobody is to take such a vault for locked.
  static func requireNoHolder(of options: GlobalOptions) throws {
    do {
      try Container.requireUnused(at: options.vaultPath)
    } catch let error as ContainerError {
      throw Failure(
        code: 75,
        text: "\(error.description). It is no agent that is found from here; where it is one that was started with "
          + "another XDG_RUNTIME_DIR, XDG_STATE_HOME or HOME, SIGHUP locks it and SIGTERM ends it")
    }
  }

  /// `false` where the agent has gone.
  private func send(_ request: AgentRequest, _ descriptors: [OwnedDescriptor] = []) -> Bool {
    request.message.withUnsafeBytes { bytes in
      do {
        try socket.send(bytes, descriptors: descriptors)
        return true
      } catch {
        return false
      }
    }
  }
}

extension String {
  /// The value in `--option=value`.
  fileprivate var behindEqualsSign: String? {
    guard hasPrefix("-"), let sign = firstIndex(of: "=") else { return nil }
    return String(self[index(after: sign)...])
  }
}
