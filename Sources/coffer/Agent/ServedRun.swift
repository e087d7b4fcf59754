internal import ArgumentParser
internal import CofferContainer
internal import CofferSystem
internal import Foundation
internal import Synchronization

/// One command that the agent runs for a client, in a thread of its own.
struct ServedRun: Sendable {
  let arguments: [String]
  let session: Session
  let folder: OwnedDescriptor

  /// - Parameter descriptors: those that belong to the command.
  init(
    _ command: AgentRequest.Command, _ descriptors: [OwnedDescriptor], _ vault: HeldVault,
    _ connection: AgentConnection
  ) {
    arguments = command.arguments
    folder = descriptors[AgentRequest.folderIndex]
    let interrupts = connection.interrupts
    // The client may go, or be stopped, while nobody reads what it writes.
    let streams = descriptors.map { $0.waiting(until: { interrupts.isRaised }) }
    let places = command.places.map { place in
      (place.path, GivenDescriptor(descriptor: streams[Int(place.index)], below: place.below))
    }
    session = Session(
      input: streams[0], output: streams[1], errors: streams[2], interrupts: interrupts,
      held: vault, environment: command.environment,
      terminal: command.hasTerminal ? streams[AgentRequest.terminalIndex] : nil,
      places: Dictionary(places, uniquingKeysWith: { first, _ in first }),
      process: (try? connection.socket.peerProcess()) ?? 0,
      confirmPresence: { connection.confirmPresence() })
  }

  /// Runs it, and says how it ended. Whatever the arguments are, what is wrong with them is told to the client.
  ///
  /// - Parameter noteIdleness: called when the command only watches from now on.
  func perform(noteIdleness: @escaping @Sendable () -> Void) -> AgentAnswer {
    session.idleness.withLock { $0 = noteIdleness }
    return session.run {
      do {
        try CurrentThread.enter(folder)
        // What it has started goes on: a mount.
        defer { CurrentThread.leave() }
        let command = try parse()
        if command is any AsyncParsableCommand {
          try ThreadExecutor().run { try await performAsynchronously() }
        } else {
          var command = command
          try command.run()
        }
        try Output.finish()
        return .exit(code: 0, brokenPipe: false)
      } catch {
        return end(with: error)
      }
    }
  }

  private func performAsynchronously() async throws {
    try await session.runAsynchronously {
      guard var command = try parse() as? any AsyncParsableCommand else { return }
      try await command.run()
    }
  }

  private func parse() throws -> any ServedCommand {
    guard let command = try CofferCommand.parseAsRoot(arguments) as? any ServedCommand else {
      throw Failure.usage("this is no command for the agent")
    }
    return command
  }

  private func end(with error: any Error) -> AgentAnswer {
    // The client ended with its signal: what would be said now stands among the lines of whoever has its terminal next.
    if session.interrupts.isRaised, !session.interrupts.isCaught { return .exit(code: 130, brokenPipe: false) }
    // Without an agent the signal ends the command before it can say anything.
    if let failure = Failure(error), failure.code == 74, session.output.hasNoReader {
      return .exit(code: 74, brokenPipe: true)
    }
    let error = Failure.reported(error)
    let code = CofferCommand.exitCode(for: error).rawValue
    if code == 130, let signal = session.interrupts.signal { return .end(signal: UInt8(truncatingIfNeeded: signal)) }
    let text = CofferCommand.fullMessage(for: error)
    if !text.isEmpty { if code == 0 { Output.text(text + "\n") } else { Output.error(text + "\n") } }
    return .exit(code: code, brokenPipe: false)
  }
}

/// Runs asynchronous work on the thread that waits for it, which has the client's current folder.
final class ThreadExecutor: TaskExecutor, @unchecked Sendable {
  private let condition = NSCondition()
  private var jobs: [UnownedJob] = []
  private var isDone = false

  func enqueue(_ job: consuming ExecutorJob) {
    let job = UnownedJob(job)
    change { jobs.append(job) }
  }

  func run(_ body: @escaping @Sendable () async throws -> Void) throws {
    let outcome = Outcome()
    Task(executorPreference: self) {
      do { try await body() } catch { outcome.error.withLock { $0 = error } }
      self.change { self.isDone = true }
    }
    while let job = next() { job.runSynchronously(on: asUnownedTaskExecutor()) }
    if let error = outcome.error.withLock({ $0 }) { throw error }
  }

  private final class Outcome: Sendable { let error = Mutex<(any Error)?>(nil) }

  private func next() -> UnownedJob? {
    condition.withLock {
      while jobs.isEmpty, !isDone { condition.wait() }
      return jobs.isEmpty ? nil : jobs.removeFirst()
    }
  }

  private func change(_ body: () -> Void) {
    condition.withLock {
      body()
      condition.broadcast()
    }
  }
}
