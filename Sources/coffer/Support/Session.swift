internal import CofferContainer
internal import CofferSystem
internal import Foundation
internal import Synchronization

/// Whom a command works for: this process and who started it, or a client of the agent.
///
/// A command takes nothing from the process it happens to run in, but from `Session.present`: descriptors, environment,
/// interrupts, and the vault that is open already. Closures that other threads call take what they need of it before.
final class Session: Sendable {
  let input: OwnedDescriptor
  let output: OwnedDescriptor
  let errors: OwnedDescriptor
  /// The process that a person has started for the command; 0 where it is not seen from here.
  let process: Int32
  let interrupts: Interrupts
  /// The vault that the agent holds; nil where the command opens it itself.
  let held: HeldVault?
  /// Asks whether the client is still there and was not interrupted; `true` without one.
  let confirmPresence: @Sendable () -> Bool
  /// What the client's paths name of its own, by the text of each.
  let places: [String: GivenDescriptor]
  private let environment: [String: String]?
  /// The terminal that the client sits at, where it has one.
  private let terminal: OwnedDescriptor?
  /// Why a result could not be written.
  let outputFailure = Mutex<SystemError?>(nil)
  /// Set by the agent, for ``noteIdleness()``.
  let idleness = Mutex<(@Sendable () -> Void)?>(nil)

  @TaskLocal private static var ofClient: Session?

  private static let ofProcess = Session(
    input: .standardInput, output: .standardOutput, errors: .standardError, interrupts: .ofProcess, held: nil,
    environment: nil, terminal: nil, confirmPresence: { true })

  static var present: Session { ofClient ?? ofProcess }

  /// The vault that is open already.
  var container: Container? { held?.container }
  /// Where that vault is mounted.
  var mounts: HeldMounts? { held?.mounts }

  init(
    input: OwnedDescriptor, output: OwnedDescriptor, errors: OwnedDescriptor, interrupts: Interrupts,
    held: HeldVault?, environment: [String: String]?, terminal: OwnedDescriptor?,
    places: [String: GivenDescriptor] = [:], process: Int32 = ProcessHardening.processID,
    confirmPresence: @escaping @Sendable () -> Bool
  ) {
    self.process = process
    self.input = input
    self.output = output
    self.errors = errors
    self.interrupts = interrupts
    self.held = held
    self.environment = environment
    self.terminal = terminal
    self.places = places
    self.confirmPresence = confirmPresence
  }

  /// The command only watches from now on: it does not keep the vault from being locked for want of use.
  func noteIdleness() { idleness.withLock { $0 }?() }

  /// A stream that is waited for as long as the client wants it; one of this process is waited for as long as it takes.
  func patient(_ stream: OwnedDescriptor) -> OwnedDescriptor {
    guard container != nil else { return stream }
    return stream.waiting(until: { [interrupts] in interrupts.isRaised })
  }

  /// Runs `body` for this session, with all that it calls and awaits.
  func run<Result>(_ body: () throws -> Result) rethrows -> Result {
    try Self.$ofClient.withValue(self, operation: body)
  }

  func runAsynchronously<Result>(_ body: () async throws -> Result) async rethrows -> Result {
    try await Self.$ofClient.withValue(self, operation: body)
  }

  func variable(_ name: String) -> String? { environment.map { $0[name] } ?? ProcessInfo.processInfo.environment[name] }

  /// Asks the person for a secret; nil where there is no terminal. A client that has gone leaves its terminal to others.
  func readSecret(prompt: String) throws -> SecretBytes? {
    do {
      guard container != nil else { return try Terminal.readSecret(prompt: prompt) }
      guard let terminal else { return nil }
      // The client stays until its terminal is as it was.
      return try interrupts.catching {
        try Terminal.readSecret(prompt: prompt, at: terminal, isCancelled: { interrupts.isRaised })
      }
    } catch let error as Terminal.Interruption {
      interrupts.raise(error.signal)
      throw Failure.interruptedQuestion
    } catch let error as SystemError where error.isInterrupt {
      throw Failure.interruptedQuestion
    }
  }
}
