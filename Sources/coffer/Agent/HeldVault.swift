internal import CofferContainer
internal import CofferFiles
internal import CofferSystem
internal import Foundation
internal import Synchronization

/// The vault that the agent holds, and whether its keys are there.
final class HeldVault: Sendable {
  let container: Container
  let mounts: HeldMounts
  /// With the company that it belongs to.
  let link: HeldLink
  /// Of its folder, absolute.
  let path: String
  let identity: FolderIdentity
  /// The folder of its key store.
  let keyStore: FolderIdentity?
  let graceSeconds: Double
  private let observation: ContainerObservation
  private let state: LockState

  private final class LockState: Sendable {
    /// When the vault was locked or unlocked last.
    let since = Mutex(Date())
  }

  /// - Parameters:
  ///   - link: makes the link of the container with these mounts.
  ///   - didChange: called on whatever thread locks or unlocks.
  init(
    _ container: Container, path: String, identity: FolderIdentity, keyStore: FolderIdentity?, graceSeconds: Double,
    link: (HeldMounts) -> HeldLink, didChange: @escaping @Sendable () -> Void
  ) {
    self.container = container
    mounts = HeldMounts(container)
    self.link = link(mounts)
    self.path = path
    self.identity = identity
    self.keyStore = keyStore
    self.graceSeconds = graceSeconds
    let state = LockState()
    self.state = state
    observation = container.observe { event in
      switch event {
      case .isBecomingUnavailable: break
      case .willBecomeUnavailable, .didBecomeUnavailable, .didBecomeAvailable:
        state.since.withLock { $0 = Date() }
        didChange()
      }
    }
  }

  /// The vault's own word.
  var present: (state: AgentStatus.State, since: Date) {
    let now: AgentStatus.State =
      switch container.lockState {
      case .unlocked: .unlocked
      case .locking: .locking
      case .locked: .locked
      }
    return (now, state.since.withLock { $0 })
  }

  func unlock(_ passcode: SecretBytes) -> AgentAnswer {
    outcome {
      try container.unlock(passcode: passcode)
      link.wake()
      return "unlocked"
    }
  }

  func lock(immediately: Bool) -> AgentAnswer {
    outcome {
      let wasLocking = present.state == .locking
      container.lock(graceSeconds: immediately ? 0 : graceSeconds)
      let when =
        switch present.state {
        case .locked: "locked"
        case .locking where wasLocking:
          "locked before; what was being read or written then still has a part of its \(graceSeconds.plain) seconds. At once: "
            + "coffer lock --now"
        case .locking: "locked; what is being read or written has \(graceSeconds.plain) seconds"
        case .unlocked: "locked, and unlocked again by somebody else"
        }
      return when
        + "\nstill readable until coffer agent stop: names, and files of the classes until-first-unlock and none"
    }
  }

  /// Stores what waits in memory; where that cannot be, why the agent does not end.
  func refusalToEnd() -> AgentAnswer? {
    do {
      try container.commit()
      return nil
    } catch let error as ContainerError where error.category == .cannotCreate || error.category == .inputOutput {
      return .outcome(
        code: Failure.code(error.category),
        text:
          "\(error.description): what programs wrote last is not stored yet, and would be lost. Mend that and try again, or give "
          + "it up with: coffer agent stop --force")
    } catch {
      // It is nothing that a later try would store.
      return nil
    }
  }

  /// Commits, and gives the vault back.
  func close() -> AgentAnswer {
    link.stop()
    mounts.endAll(forGood: true)
    let answer = outcome {
      try container.close()
      return "the agent has ended"
    }
    guard case .outcome(let code, let text) = answer, code != 0 else { return answer }
    return .outcome(code: code, text: "\(text); the agent has ended, and what it could not store is lost")
  }

  private func outcome(_ body: () throws -> String) -> AgentAnswer {
    do {
      return .outcome(code: 0, text: try body())
    } catch {
      let failure = Failure(error) ?? Failure(code: 70, text: "internal error (\(type(of: error)))")
      return .outcome(code: failure.code, text: failure.text)
    }
  }
}
