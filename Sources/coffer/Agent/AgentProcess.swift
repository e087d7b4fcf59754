internal import ArgumentParser
internal import CofferContainer
internal import CofferSystem
internal import Foundation
internal import Synchronization

/// The process that holds the open vault.
struct AgentProcess {
  /// Set when the vault was wiped by order.
  private final class WipeMark: Sendable {
    let isSet = Atomic(false)
  }

  let options: GlobalOptions
  let settings: AgentSettings

  /// Opens the vault and serves until it is told to end.
  ///
  /// - Parameters:
  ///   - passcode: called once it is known that no other agent holds the vault.
  ///   - didStart: called when clients find the agent.
  func run(passcode: () throws -> SecretBytes, didStart: () throws -> Void) throws {
    // What runs here has its own current folder, so nothing may be relative.
    let options = try options.absolute
    // Before the first secret.
    ProcessHardening.startLeavingNoCopies()
    let memoryLocked = ProcessHardening.keepOutOfSwap()
    ProcessHardening.raiseDescriptorLimit()
    let path = try options.vaultPath
    guard let id = Container.statedID(at: path), let place = try AgentPlace.of(id, making: true) else {
      // Says why it is no vault.
      return try options.open(passcode: passcode).close()
    }
    guard let name = try place.takeName() else {
      throw Failure(
        code: 75,
        text:
          "an agent holds this vault already, or a copy of it in another folder, and only one of them can be held at a time; end that "
          + "with: coffer agent stop --vault FOLDER")
    }
    let container = try options.open(passcode: passcode)
    let bell = try Bell()
    let (keyStore, wipe) = (try options.keyStorePath, WipeMark())
    let vault = HeldVault(
      container, path: path, identity: try FolderIdentity(at: path), keyStore: try? FolderIdentity(at: keyStore),
      graceSeconds: settings.grace, mounts: HeldMounts(container, claims: try? place.openClaims()),
      link: { mounts in
        HeldLink(container, mounts: mounts, path: path, keyStorePath: keyStore) {
          wipe.isSet.store(true, ordering: .releasing)
          bell.ring(.wiped)
        }
      },
      didChange: { bell.ring(.lockChanged) })
    let listener = AgentListener(id)
    let socket = try listener.listen(at: place, name: name)
    bell.ringForSignals([
      SignalRelay.termination, SignalRelay.interrupt, SignalRelay.hangUp, SignalRelay.user1,
    ])
    let server = AgentServer(
      vault, listener: socket, bell: bell, idleMinutes: settings.idleLock, memoryLocked: memoryLocked,
      lookAfterListener: { tell in listener.lookAfter(tell: tell) }, removeSocket: { listener.remove() })
    try didStart()
    vault.link.start()
    let answer = try withExtendedLifetime(listener) { try server.run() }
    if wipe.isSet.load(ordering: .acquiring) {
      // Nothing that the company wiped can be stored any more, whatever closing it says.
      return WipedVault(vault: container.id, path: path, keyStore: keyStore).finishWaiting()
    }
    if case .outcome(let code, let text) = answer, code != 0 { throw Failure(code: code, text: text) }
  }

  /// Starts this program again as an agent in the background, and returns when clients find it. Its failure is thrown as
  /// it was told.
  ///
  /// The passcode goes through a pipe: what stands in arguments or the environment, others can read.
  func startInBackground(passcode: SecretBytes) throws {
    Interrupts.catchFromHere()
    let program = try BackgroundProgram(
      Bundle.main.executableURL?.path ?? "/proc/self/exe", settings.arguments(for: options),
      environment: Environment.relevant.merging(ProcessHardening.leavingNoCopies) { $1 })
    // A program that has ended already says why.
    SignalRelay.ignoreBrokenPipes()
    try? program.input.writeAll(passcode)
    try? program.input.writeAll([10])
    func requireUninterrupted() throws {
      guard Interrupts.present.isRaised else { return }
      // Not by a signal that it may ignore, or wait with: there is nothing to be lost yet.
      kill(program.processID, SIGKILL)
      _ = program.waitForEnd()
      throw Failure(code: 130, text: "interrupted; the vault was not unlocked")
    }
    while try !program.output.waitUntilReadable(milliseconds: 50) { try requireUninterrupted() }
    Interrupts.catchNoMore()
    try requireUninterrupted()
    var ready = [UInt8](repeating: 0, count: 1)
    if try ready.withUnsafeMutableBytes({ try program.output.read(into: $0) }) == 1 { return }
    let text = String(decoding: (try? program.errors.contents(limit: 64 << 10)) ?? [], as: UTF8.self)
    Output.error(text)
    throw ExitCode(program.waitForEnd())
  }
}
