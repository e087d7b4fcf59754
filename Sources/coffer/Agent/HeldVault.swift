internal import CofferContainer
internal import CofferFiles
internal import CofferSystem
internal import Foundation
internal import Synchronization

/// The vault that the agent holds, and whether its keys are there.
final class HeldVault: Sendable {
  let container: Container
  let mounts: HeldMounts
  let identity: FolderIdentity
  let graceSeconds: Double
  private let observation: ContainerObservation
  private let state: LockState

  private final class LockState: Sendable {
    let value = Mutex((state: AgentStatus.State.unlocked, since: Date()))
  }

  /// - Parameter didChange: called on whatever thread locks or unlocks.
  init(
    _ container: Container, identity: FolderIdentity, graceSeconds: Double, didChange: @escaping @Sendable () -> Void
  ) {
    self.container = container
    mounts = HeldMounts(container)
    self.identity = identity
    self.graceSeconds = graceSeconds
    let state = LockState()
    self.state = state
    observation = container.observe { event in
      let new: AgentStatus.State =
        switch event {
        case .willBecomeUnavailable: .locking
        case .didBecomeUnavailable: .locked
        case .didBecomeAvailable: .unlocked
        }
      state.value.withLock { $0 = (new, Date()) }
      didChange()
    }
  }

  var present: (state: AgentStatus.State, since: Date) { state.value.withLock { $0 } }

  func unlock(_ passcode: SecretBytes) -> AgentAnswer {
    outcome {
      try container.unlock(passcode: passcode)
      return "unlocked"
    }
  }

  func lock(immediately: Bool) -> AgentAnswer {
    outcome {
      container.lock(graceSeconds: immediately ? 0 : graceSeconds)
      let when =
        present.state == .locked ? "locked" : "locked; what is being read or written has \(graceSeconds.plain) seconds"
      return when
        + "\nstill readable until coffer agent stop: names, and files of the classes until-first-unlock and none"
    }
  }

  /// Commits, and gives the vault back.
  func close() -> AgentAnswer {
    mounts.endAll(forGood: true)
    return outcome {
      try container.close()
      return "the agent has ended"
    }
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
