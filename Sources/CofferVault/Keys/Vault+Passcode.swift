public import CofferCrypto
public import CofferKeys
public import CofferSystem

/// Changing the passcode, and what else opens a vault.
extension Vault {
  /// Puts a new passcode in the place of the old one, and applies `options`. What opened with the old passcode opens
  /// with nothing from then on, a copy of the vault's folder from before included, unless a recovery key or an escrow key
  /// opens it.
  ///
  /// A crash leaves the old passcode or the new one, never both or neither. A failure may leave either: whoever is told of
  /// one tries the new passcode first.
  ///
  /// - Parameters:
  ///   - new: called once the old passcode was right.
  ///   - derivation: the cost from now on; nil for the present one. The salt is new in any case.
  /// Throws `wrongPasscode`, `tooManyAttempts`, `wiped`, `outdatedKeybag`, and `olderThanAnchor` for a vault that can only
  /// be read; and whatever `old` and `new` throw.
  public func changePasscode(
    old: () throws -> SecretBytes, new: () throws -> SecretBytes, derivation: PasscodeDerivation? = nil,
    options: KeybagOptions = KeybagOptions()
  ) throws {
    try Self.openingErrors {
      guard !isReadOnly else { throw VaultError.olderThanAnchor }
      let locked = try LockedVault(in: folder, keyStore: keyStore, time: time, tries: tries)
      guard locked.id == id else { throw VaultError.damaged(what: VaultFormat.description) }
      let opened = try locked.unlock(passcode: old)
      try replaceKeybag(
        opened, of: locked, passcode: AskedPasscode(asking: new).value, derivation: derivation, options: options)
    }
  }

  /// As above, for whoever has shown the passcode just now.
  public func changePasscode(
    with access: inout VaultAccess, new: () throws -> SecretBytes, derivation: PasscodeDerivation? = nil,
    options: KeybagOptions = KeybagOptions()
  ) throws {
    try Self.openingErrors {
      guard !isReadOnly else { throw VaultError.olderThanAnchor }
      let locked = try LockedVault(in: folder, keyStore: keyStore, time: time, tries: tries)
      access.opened = try replaceKeybag(
        access.opened, of: locked, passcode: AskedPasscode(asking: new).value, derivation: derivation, options: options)
    }
  }

  /// As above, for a vault that nobody has open.
  ///
  /// - Parameter new: called once the old passcode was right.
  public static func changePasscode(
    at path: String, keyStore: any KeyStore, old: () throws -> SecretBytes, new: () throws -> SecretBytes,
    derivation: PasscodeDerivation? = nil, options: KeybagOptions = KeybagOptions(),
    files: FileSystem = FileSystem(), time: any TimeSource = SystemTime(), vaultOptions: VaultOptions = VaultOptions()
  ) throws {
    try changePasscode(
      at: path, keyStore: keyStore, old: old, new: new, derivation: derivation, options: options, files: files,
      time: time, vaultOptions: vaultOptions
    ) { try $0.key(for: $1) }
  }

  static func changePasscode(
    at path: String, keyStore: any KeyStore, old: () throws -> SecretBytes, new: () throws -> SecretBytes,
    derivation: PasscodeDerivation? = nil, options: KeybagOptions = KeybagOptions(), files: FileSystem,
    time: any TimeSource, vaultOptions: VaultOptions, deriving derive: LockedVault.Derive
  ) throws {
    try openingErrors {
      let place = try VaultPlace(
        at: path, files: files, keyStore: keyStore, time: time, scheduler: vaultOptions.scheduler)
      let opened = try place.locked.unlock(passcode: old, deriving: derive)
      let vault = try place.vault(opened, options: vaultOptions)
      do {
        guard !vault.isReadOnly else { throw VaultError.olderThanAnchor }
        try vault.replaceKeybag(
          opened, of: place.locked, passcode: AskedPasscode(asking: new).value, derivation: derivation,
          options: options, deriving: derive)
      } catch {
        try? vault.close()
        throw error
      }
      try vault.close()
    }
  }

  /// What the keybag says of the ways to open the vault.
  public func keybagSummary() throws(VaultError) -> KeybagSummary {
    try VaultError.catching {
      try KeybagSummary(LockedVault(in: folder, keyStore: keyStore, time: time).wrapped().keybag)
    }
  }

  @discardableResult
  private func replaceKeybag(
    _ opened: LockedVault.Opened, of locked: LockedVault, passcode: SecretBytes, derivation: PasscodeDerivation?,
    options: KeybagOptions, deriving derive: LockedVault.Derive = { try $0.key(for: $1) }
  ) throws -> LockedVault.Opened {
    try passcode.requirePasscode()
    let derivation = try (derivation ?? opened.keybag.derivation).renewed()
    // Of a passcode that is set, not tried: nothing to count.
    let derived = try derive(derivation, passcode)
    let component = SecretKey()
    return try locked.withLock {
      let found = try locked.wrapped()
      // Somebody changed it since: that passcode is the old one's end.
      guard found.bytes == opened.bytes else { throw VaultError.wrongPasscode }
      var keybag = opened.keybag
      try keybag.apply(options, master: opened.master, vault: id)
      try keybag.lock(
        with: .init(
          derivation: derivation, derived: derived, device: found.device, rotation: component, master: opened.master),
        for: locked.description)
      let bytes = try keybag.encoded()
      let (before, after) = (Digest.sha256(opened.bytes), Digest.sha256(bytes))
      try KeybagChange(locked: locked, present: [found.rotation], component: component, bytes: bytes).run(
        announce: { try followKeybag(before, next: after) }, conclude: { try followKeybag(after, next: nil) })
      try? locked.renewExchange(keybag, bytes, master: opened.master, on: found.device)
      return LockedVault.Opened(keybag: keybag, bytes: bytes, master: opened.master, keys: opened.keys)
    }
  }
}
