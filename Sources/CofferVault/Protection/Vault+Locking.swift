internal import CofferKeys
public import CofferSystem

/// Whether the keys of the classes complete and complete-unless-open are there.
public enum VaultLockState: Sendable, Hashable {
  case unlocked
  /// Nothing new is opened, and the keys go when the grace period is over.
  case locking
  case locked
}

/// Locking and unlocking an open vault.
extension Vault {
  /// Seconds between a lock and the keys' end, in which whoever has a file open can finish.
  public static let graceSeconds = 10.0

  /// Content of the classes complete and complete-unless-open cannot be opened.
  public var isLocked: Bool { lockState != .unlocked }

  /// As it is at this moment, whatever observers have heard of it yet.
  public var lockState: VaultLockState {
    switch keys.phase {
    case .unlocked: .unlocked
    case .locking, .dropping: .locking
    case .locked: .locked
    }
  }

  /// Calls `observer` on every event from now on, on the thread that locks or unlocks, until the observation goes.
  ///
  /// It may use the vault: where it locks or unlocks, that is done when the event has been told to all. It must not wait
  /// for another thread that locks or unlocks.
  public func observe(_ observer: @escaping @Sendable (VaultEvent) -> Void) -> VaultObservation {
    observers.add(observer)
  }

  /// Locks the vault: nothing of class complete is opened from here on; what waits in memory is sealed; and after the
  /// grace period the keys go, once the calls that use them are done. What is sealed then is written and committed
  /// afterwards, so that nobody waits for the disk.
  ///
  /// Open files of class complete-unless-open go on, and new ones can be made. Locking a locked vault does nothing; a
  /// second call with a shorter grace period hastens the end.
  ///
  /// - Parameter graceSeconds: with 0 the keys are gone when it returns.
  public func lock(graceSeconds: Double = Vault.graceSeconds) {
    transitions.run { [self] in
      guard let turn = keys.beginLocking() else { return }
      if turn.isFirst {
        observers.tell(.willBecomeUnavailable)
        files.sealBeforeLock()
      }
      if graceSeconds <= 0 { return dropKeys(turn.number) }
      scheduler.schedule(afterSeconds: graceSeconds) { [weak self] in
        self?.transitions.run { [weak self] in self?.dropKeys(turn.number) }
      }
    }
  }

  private func dropKeys(_ turn: Int) {
    guard keys.isDue(turn: turn) else { return }
    observers.tell(.isBecomingUnavailable)
    keys.drop()
    files.dropKeys()
    keys.didDrop()
    observers.tell(.didBecomeUnavailable)
    scheduler.schedule(afterSeconds: 0) { [weak self] in self?.commitInBackground() }
  }

  /// Unlocks the vault: open files of class complete can be read and written again, and what was deposited becomes
  /// complete. Throws `wrongPasscode`, `tooManyAttempts`, and `wiped` where that was one try too many.
  ///
  /// - Returns: leave to change what else opens it.
  @discardableResult
  public func unlock(passcode: SecretBytes) throws(VaultError) -> VaultAccess {
    try VaultError.catching {
      let opened = try Vault.unlocked(
        in: folder, id: id, keyStore: keyStore, time: time, passcode: passcode, tries: tries)
      takeBack(opened.keys)
      return VaultAccess(opened: opened)
    }
  }

  /// Puts the keys back that a passcode has opened.
  func takeBack(_ found: UnlockedKeys) {
    transitions.run { [self] in
      guard keys.restore(found.classKeys) else { return }
      // The vault is unlocked whatever becomes of these: their marks stay for the next time.
      if !isReadOnly { try? completeDeposits() }
      observers.tell(.didBecomeAvailable)
    }
  }
}
