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
  /// Of its folder when this began, absolute.
  private let path: String
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
    mounts: HeldMounts, link: (HeldMounts) -> HeldLink, didChange: @escaping @Sendable () -> Void
  ) {
    self.container = container
    self.mounts = mounts
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

  /// The vault's folder; nil where somebody has moved it since.
  var presentPath: String? { (try? FolderIdentity(at: path)) == identity ? path : nil }

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
          "locked before; what was being read or written then still has a part of its \(graceSeconds.counted("second")). At once: "
            + "coffer lock --now"
        case .locking: "locked; what is being read or written has \(graceSeconds.counted("second"))"
        case .unlocked: "locked, and unlocked again by somebody else"
        }
      // Whoever asks in another form is to hear of it as well.
      return when + (mounts.loss.map { "\n" + $0 } ?? "")
        + "\nstill readable until coffer agent stop: names, attributes, targets of links, and files of the classes until-first-unlock and none"
    }
  }

  /// Stores what waits in memory, and what programs stored to mappings; where that cannot be, why the agent does not end.
  func refusalToEnd() -> AgentAnswer? {
    if let refusal = refusalToStore() { return refusal }
    let mapped = mounts.mappedByteCount
    if mapped == 0 { return nil }
    // The kernel loses what finds no room when it gives it back.
    guard container.hasRoom(forBytes: mapped) else {
      return .outcome(
        code: 73,
        text:
          "programs have files open in a mount that are larger than the room on the vault's disk: what they have stored to mappings "
          + "may find none. Close them, or make room, and try again, or take the risk with: coffer agent stop --force")
    }
    mounts.bringPagesBack()
    if let loss = mounts.takeLoss() { return .outcome(code: 73, text: "\(loss). To end the agent now, try again") }
    return refusalToStore()
  }

  private func refusalToStore() -> AgentAnswer? {
    do {
      try container.commit()
      return nil
    } catch let error as ContainerError {
      switch error.category {
      case .cannotCreate, .inputOutput, .tryAgain, .inUse:
        return .outcome(
          code: Failure.code(error.category),
          text: "\(error.description): what programs wrote last is not stored. \(Self.advice)")
      case .closedToChanges:
        return .outcome(
          code: Failure.code(error.category),
          text:
            "\(error.description). What programs wrote since then cannot be stored any more; end the agent all the same with: "
            + "coffer agent stop --force")
      case .usage, .damaged, .notFound, .refused, .cancelled: return nil
      }
    } catch {
      return nil
    }
  }

  private static let advice =
    "Make room, or mend what is wrong, and try again. Where that is no use, what is not stored is lost with: coffer agent stop --force"

  /// Commits, and gives the vault back.
  func close() -> AgentAnswer {
    link.stop()
    let loss = mounts.endAll(forGood: true)
    let answer = outcome {
      try container.close()
      return "the agent has ended"
    }
    guard case .outcome(let code, let text) = answer, code != 0 else {
      return loss.map { .outcome(code: 73, text: "the agent has ended; \($0)") } ?? answer
    }
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
