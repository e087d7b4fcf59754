public import CofferCrypto
public import CofferKeys
internal import CofferPolicy
public import CofferSystem
internal import CofferVault

/// What opens a vault, and its end. These ask the gate nothing: no content moves.
extension Container {
  /// What the vault says of the ways to open it.
  public func keySummary() throws -> KeySummary {
    try ContainerError.catching {
      let summary = try vault.keybagSummary()
      return KeySummary(
        derivation: summary.derivation, hasRecoveryKey: summary.hasRecoveryKey, escrowKey: summary.escrowKey,
        wipesAfterTenFailures: summary.wipesAfterTenFailures)
    }
  }

  /// Puts a new passcode in the place of the old one, and applies `options`. What opened with the old passcode, a copy
  /// of the vault from before included, opens with no passcode from then on.
  ///
  /// - Parameters:
  ///   - new: called once the old passcode was right.
  ///   - derivation: the cost from now on; nil for the present one.
  ///   - onEscrowChange: called with what the old passcode made of the company's key, also where the new one fails.
  public static func changePasscode(
    at path: String, keyStore: any KeyStore, old: () throws -> SecretBytes, new: () throws -> SecretBytes,
    derivation: PasscodeDerivation? = nil, options: KeyOptions = KeyOptions(), sniffer: any ContentSniffer,
    time: any TimeSource = SystemTime(), onEscrowChange: (EscrowChange) -> Void
  ) throws {
    var (container, access) = try openWithAccess(
      at: path, keyStore: keyStore, passcode: old, sniffer: sniffer, time: time)
    if let change = container.takeEscrowChange() { onEscrowChange(change) }
    do {
      try ContainerError.catching {
        try container.vault.changePasscode(
          with: &access, new: { try checked(new, atLeast: container.passcodeMinimum(at: path, keyStore)) },
          derivation: derivation, options: options.keybag)
      }
    } catch {
      try? container.close()
      throw error
    }
    try container.close()
  }

  /// As above, for a vault that is open.
  public func changePasscode(
    old: () throws -> SecretBytes, new: () throws -> SecretBytes, derivation: PasscodeDerivation? = nil,
    options: KeyOptions = KeyOptions()
  ) throws {
    try ContainerError.telling(vault.passcodeAttempts) {
      try vault.changePasscode(
        old: old, new: { try Self.checked(new, atLeast: managedSettings.passcodeMinimumLength) },
        derivation: derivation, options: options.keybag)
    }
  }

  /// Opens a vault with a recovery key or a company's escrow key, and sets a new passcode. Where the key store knows
  /// nothing of the vault, this device takes it on, on a new branch.
  ///
  /// - Parameter passcode: called once the key was right.
  public static func recover(
    at path: String, keyStore: any KeyStore, with means: RecoveryMeans, passcode: () throws -> SecretBytes,
    derivation: PasscodeDerivation, options: KeyOptions = KeyOptions(), sniffer: any ContentSniffer,
    acceptingOlderState: Bool = false, time: any TimeSource = SystemTime()
  ) throws -> Container {
    try ContainerError.catching {
      var vaultOptions = VaultOptions()
      vaultOptions.acceptsOlderState = acceptingOlderState
      let key: WayBack =
        switch means {
        case .recoveryKey(let key): .recoveryKey(key)
        case .escrowKey(let key): .escrowKey(key)
        case .clearingCode(let code): .clearingCode(code)
        }
      do {
        return try Container(
          Vault.recover(
            at: path, keyStore: keyStore, with: key,
            passcode: { setting in
              let least = [passcodeMinimum(at: path, keyStore), try? passcodeMinimum(in: setting)].compactMap(\.self)
                .max()
              return try checked(passcode, atLeast: least)
            },
            derivation: derivation, keybag: options.keybag,
            time: time, vaultOptions: vaultOptions),
          keyStore: keyStore, sniffer: sniffer, time: time)
      } catch VaultError.olderThanAnchor {
        // Not what it says elsewhere: nothing was opened, and accept-restored may find no passcode that does.
        throw ContainerError(
          .damaged,
          "nothing was changed: this copy is older than the newest state this device has seen, or went another way. To "
            + "take it as the vault from now on, and give up what was changed since: coffer recover --accept-restored")
      }
    }
  }

  /// Destroys a vault: its keys first, within milliseconds at any size, then the rest. Needs no passcode, and can be
  /// called again where a crash cut it or another process has the vault open.
  ///
  /// A copy of a vault has its keys: where the folder is not known to be the vault of this key store, nothing is destroyed,
  /// unless those of every copy are to be.
  ///
  /// - Parameters:
  ///   - expected: the vault that is meant. Throws `notFound` where the folder is another one's.
  ///   - keysDestroyed: called when nothing that is stored opens it any more, before the rest goes.
  public static func wipe(
    at path: String, keyStore: any KeyStore, everyCopy: Bool = false, expecting expected: VaultID? = nil,
    keysDestroyed: () -> Void = {}
  ) throws -> WipeOutcome {
    try wipe(at: path, keyStore, everyCopy ? .everyCopy : .vault, expected, keysDestroyed)
  }

  /// Removes what a wipe has left of the vault `expected` whose keys are known to have gone. Throws where the folder has a keybag, or
  /// keys were made for the vault since: it is a backup then, or was recovered.
  public static func removeRemains(
    at path: String, keyStore: any KeyStore, expecting expected: VaultID
  ) throws -> WipeOutcome {
    try wipe(at: path, keyStore, .remains, expected, {})
  }

  private static func wipe(
    at path: String, _ keyStore: any KeyStore, _ scope: WipeScope, _ expected: VaultID?, _ keysDestroyed: () -> Void
  ) throws -> WipeOutcome {
    try ContainerError.catching {
      let report = try Vault.wipe(
        at: path, keyStore: keyStore, scope: scope, expecting: expected, keysDestroyed: keysDestroyed)
      let keys: WipeOutcome.Keys =
        switch report.keys {
        case .destroyed: .destroyed
        case .destroyedBefore: .destroyedBefore
        case .absent: .absent
        }
      return WipeOutcome(
        keys: keys, hadRecoveryKey: report.hadRecoveryKey, hadEscrowKey: report.hadEscrowKey, holder: report.holder)
    }
  }

  /// Destroys the keys of this vault and of every copy of it, wherever its folder is by now. What is left goes when it is closed and
  /// wiped.
  public func destroyKeys() throws { try ContainerError.catching { try vault.destroyKeys() } }
}

extension ContainerError {
  /// Runs `body`; where a passcode was wrong, says what the next wrong one brings.
  static func telling<Result>(
    _ attempts: @autoclosure () -> PasscodeAttempts?, _ body: () throws -> Result
  ) throws -> Result {
    do {
      return try body()
    } catch VaultError.wrongPasscode {
      throw ContainerError(.refused, VaultError.wrongPasscode.description + (attempts().map(hint) ?? ""))
    } catch let error as VaultError {
      throw ContainerError(error)
    }
  }

  private static func hint(_ attempts: PasscodeAttempts) -> String {
    var text = ""
    if attempts.retryAfterSeconds > 0 {
      text = "; the next may be tried in \(VaultError.duration(attempts.retryAfterSeconds))"
    } else if attempts.triesBeforeDelay < 4 {
      let tries = attempts.triesBeforeDelay
      text =
        "; after \(tries) more wrong one\(tries == 1 ? "" : "s") nothing is tried for "
        + VaultError.duration(attempts.nextDelay)
    }
    guard let left = attempts.triesBeforeWipe, left <= 5 else { return text }
    return text + "; after \(left) more wrong one\(left == 1 ? "" : "s") the vault is destroyed"
  }
}
