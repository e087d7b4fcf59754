public import CofferCrypto
public import CofferKeys
public import CofferSystem

/// A key that opens a vault without its passcode and its device.
public enum WayBack: Sendable {
  /// The one that the vault's owner keeps on paper.
  case recoveryKey(RecoveryKey)
  /// The private half of the company's key.
  case escrowKey(HybridKey)
  /// The code of a clearing that waits on this device.
  case clearingCode(RecoveryKey)

  /// What is to be in the company's audit.
  var use: EscrowUse.Means? {
    switch self {
    case .recoveryKey: nil
    case .escrowKey: .escrowKey
    case .clearingCode: .clearing
    }
  }
}

extension Vault {
  /// Opens a vault with a recovery key or a company's escrow key, and sets a new passcode for this device.
  ///
  /// Where the key store knows the vault, its rotation goes on: the former passcode opens nothing any more, and what was
  /// counted of wrong ones is forgotten. Where it knows nothing of it, it gets a device secret of its own, and the vault
  /// is taken on as one that was restored, on a new branch; on the device that it was made on, it can then be read only.
  /// Both keys stay valid, unless `keybag` replaces them.
  ///
  /// A crash leaves the vault as it was or recovered; until then the same key opens it again.
  ///
  /// - Parameters:
  ///   - passcode: called once the key was right, with what the vault keeps as settings.
  ///   - options: `acceptsOlderState` for a copy that is older than what this device has seen.
  /// Throws `copyOfPresentVault` for a copy whose vault is still in use here, unless `acceptsOlderState`;
  /// `noRecoverySlot`, `wrongRecoveryKey`, `noEscrowSlot`, `wrongEscrowKey`, `clearing`; `olderThanAnchor` for a copy that is
  /// older than what this device has seen; and what opening throws.
  public static func recover(
    at path: String, keyStore: any KeyStore, with key: WayBack,
    passcode: (_ setting: (String) throws -> [UInt8]?) throws -> SecretBytes,
    derivation: PasscodeDerivation, keybag options: KeybagOptions = KeybagOptions(),
    files: FileSystem = FileSystem(), time: any TimeSource = SystemTime(), vaultOptions: VaultOptions = VaultOptions()
  ) throws -> Vault {
    try recover(
      at: path, keyStore: keyStore, with: key, passcode: passcode, derivation: derivation, keybag: options,
      files: files, time: time, vaultOptions: vaultOptions
    ) { try $0.key(for: $1) }
  }

  static func recover(
    at path: String, keyStore: any KeyStore, with key: WayBack,
    passcode: (_ setting: (String) throws -> [UInt8]?) throws -> SecretBytes,
    derivation: PasscodeDerivation, keybag options: KeybagOptions, files: FileSystem, time: any TimeSource,
    vaultOptions: VaultOptions, deriving derive: LockedVault.Derive
  ) throws -> Vault {
    try openingErrors {
      let place = try VaultPlace(
        at: path, files: files, keyStore: keyStore, time: time, scheduler: vaultOptions.scheduler)
      try place.requireIndex()
      let found = try place.locked.open(with: key)
      var recovery = try VaultRecovery(
        place: place, found: found, acceptsOlderState: vaultOptions.acceptsOlderState)
      let passcode = try AskedPasscode(asking: { try passcode { try place.setting($0, found.keys) } }).value
      try passcode.requirePasscode()
      try vaultOptions.scheduler.requireReady()
      let opened = try recovery.run(
        passcode: passcode, derivation: derivation.renewed(), options: options, use: key.use, deriving: derive)
      return try place.vault(opened, options: vaultOptions)
    }
  }
}

extension LockedVault {
  /// A wipe has begun: what the key store still has opens nothing.
  fileprivate func isWiped() throws -> Bool { try keyStore.read(.wiped, of: id) != nil }

  /// Opens the keybag without passcode and device.
  func open(with key: WayBack) throws -> Opened {
    guard let bytes = try folder.contents(of: VaultFormat.keybag) else {
      let isWiped = try isWiped() || keyStore.read(.deviceSecret, of: id) == nil
      throw isWiped ? VaultError.wiped : .damaged(what: VaultFormat.keybag)
    }
    let keybag = try Keybag(parsing: bytes)
    let master =
      switch key {
      case .recoveryKey(let key): try keybag.master(key, vault: id)
      case .escrowKey(let key): try keybag.master(key, vault: id)
      case .clearingCode(let code): try master(clearedWith: code)
      }
    return Opened(keybag: keybag, bytes: bytes, master: master, keys: try keybag.keys(under: master, description))
  }
}

extension VaultPlace {
  /// A setting, before anything was changed. Throws where it is damaged.
  fileprivate func setting(_ name: String, _ keys: UnlockedKeys) throws -> [UInt8]? {
    let index = try Index(in: locked.folder, keys: keys, vault: locked.id)
    defer { try? index.close() }
    return try index.read { try Vault.setting(name, in: $0) }
  }

  /// The root of the last commit, or that of one which goes another way from then on than any copy.
  fileprivate func root(_ keys: UnlockedKeys, onNewBranch: Bool = false) throws -> CommittedRoot {
    let index = try Index(in: locked.folder, keys: keys, vault: locked.id)
    defer { try? index.close() }
    if onNewBranch {
      index.read { $0.beginBranch(above: 0) }
      _ = try index.commit(prepare: {})
    }
    return index.read { $0.committed }
  }
}

/// Gives a vault that was opened without its passcode a new one.
private struct VaultRecovery {
  let place: VaultPlace
  let found: LockedVault.Opened
  private var root: CommittedRoot
  /// The key store keeps no secret for the vault, or a wipe has begun there.
  private let isNewDevice: Bool
  /// One has begun there.
  private let wasWiped: Bool
  private let secret: SecretBytes
  private let anchor: Anchor?
  /// Nothing says what state was the newest here.
  private var isUnknown: Bool { isNewDevice || anchor == nil }
  private var locked: LockedVault { place.locked }

  /// Throws `olderThanAnchor`.
  init(place: VaultPlace, found: LockedVault.Opened, acceptsOlderState: Bool) throws {
    root = try place.root(found.keys)
    let locked = place.locked
    wasWiped = try locked.isWiped()
    let secret = try wasWiped ? nil : locked.keyStore.read(.deviceSecret, of: locked.id)
    anchor = try locked.keyStore.read(.anchor, of: locked.id).flatMap { bytes in
      try? Anchor(decoding: bytes.withUnsafeBytes { Array($0) })
    }
    // Whoever has this key may put any keybag in place; only the state of the files is held against the anchor.
    guard secret == nil || acceptsOlderState || anchor?.accepts(root) == true else { throw VaultError.olderThanAnchor }
    // The key store has one passcode for all of them: a new one for a copy would lock out the vault itself.
    if secret != nil, !acceptsOlderState, let kept = try FolderPlace(in: locked.keyStore, for: locked.id),
      try !kept.isOf(locked.folder, locked.id), try kept.hasVault(locked.id, locked.folder.files)
    {
      throw VaultError.copyOfPresentVault
    }
    isNewDevice = secret == nil
    self.secret = secret ?? SecretKey().secretBytes
    self.place = place
    self.found = found
  }

  mutating func run(
    passcode: SecretBytes, derivation: PasscodeDerivation, options: KeybagOptions, use: EscrowUse.Means?,
    deriving derive: LockedVault.Derive
  ) throws -> LockedVault.Opened {
    let device = try DeviceKeys(secret: secret, vault: locked.id)
    let component = SecretKey()
    var keybag = found.keybag
    try keybag.apply(options, master: found.master, vault: locked.id)
    try keybag.lock(
      with: .init(
        derivation: derivation, derived: derive(derivation, passcode), device: device, rotation: component,
        master: found.master),
      for: locked.description)
    let bytes = try keybag.encoded()
    // Before the anchor, which is then the new branch's: a crash between leaves a device that still knows nothing.
    if isUnknown { root = try place.root(found.keys, onNewBranch: true) }
    // The first item, without which there is nothing to lock.
    if isNewDevice, !wasWiped { try writeAnchor(present: Digest.sha256(bytes), next: nil) }
    try locked.withLock {
      try requireUnchanged()
      if wasWiped {
        // The mark stays until there is something to open: what a crash leaves before is of a wiped vault.
        try locked.keyStore.removeAll(of: locked.id, keeping: [.wiped])
        try writeAnchor(present: Digest.sha256(bytes), next: nil)
      }
      if isNewDevice { try prepareDevice(device, component) }
      // Before the new passcode opens anything: whatever a crash leaves, the next opening records it.
      if let use { try locked.note(EscrowUse(means: use, time: locked.time.now().seconds), on: device) }
      if wasWiped {
        try locked.keyStore.removeAll(of: locked.id, keeping: Set(KeyStoreItem.allCases).subtracting([.wiped]))
      }
      try KeybagChange(
        locked: locked, present: isNewDevice ? [] : presentComponents(), component: component, bytes: bytes
      )
      .run(announce: { try announce(Digest.sha256(bytes)) }, conclude: {})
      try write(AttemptRecord().secretBytes(key: device.attempts), .attempts)
      // The only keybag that the passcode opens.
      try FolderPlace(of: locked.folder).store(in: locked.keyStore, for: locked.id)
      try? locked.renewExchange(keybag, bytes, master: found.master, on: device)
    }
    return LockedVault.Opened(keybag: keybag, bytes: bytes, master: found.master, keys: found.keys)
  }

  /// A wipe may have come since: what it has destroyed is not written back. Under the key store's lock.
  private func requireUnchanged() throws {
    let present = try locked.keyStore.read(.deviceSecret, of: locked.id)
    let isSame = isNewDevice ? wasWiped || present == nil : present.map { secret.isEqual(to: $0) } ?? false
    guard try isSame && locked.isWiped() == wasWiped, try locked.folder.contents(of: VaultFormat.keybag) == found.bytes
    else {
      throw VaultError.wiped
    }
  }

  /// What the key store needs before the keybag, beside the anchor. The secret comes last: without it, this is a new
  /// device the next time, too.
  private func prepareDevice(_ device: DeviceKeys, _ component: SecretKey) throws {
    try write(AttemptRecord().secretBytes(key: device.attempts), .attempts)
    try write(RotationRecord([component]).encoded(), .rotation)
    try write(secret, .deviceSecret)
  }

  /// The component of the keybag that is there, where the key store has it: a crash before the new keybag is there must
  /// leave the old one what it needs.
  private func presentComponents() throws -> [SecretKey] {
    guard let bytes = try locked.keyStore.read(.rotation, of: locked.id),
      let component = (try? RotationRecord(decoding: bytes))?.component(committedBy: found.keybag.rotationCommitment)
    else { return [] }
    return [component]
  }

  /// Makes the anchor accept the new keybag as well. It keeps the state that was seen, unless there is none.
  private func announce(_ digest: [UInt8]) throws {
    if isNewDevice { return }
    try writeAnchor(present: Digest.sha256(found.bytes), next: digest)
  }

  private func writeAnchor(present: [UInt8], next: [UInt8]?) throws {
    // Without an anchor the vault is its owner's: whoever may recover it could have removed the whole key store as well.
    var anchor =
      (isNewDevice ? nil : self.anchor)
      ?? Anchor(
        branch: root.branch, generation: root.generation, commit: root.commit, keybagDigest: present, isBound: false
      )
    anchor.keybagDigest = present
    anchor.nextKeybagDigest = next
    try write(anchor.secretBytes, .anchor)
  }

  private func write(_ value: SecretBytes, _ item: KeyStoreItem) throws {
    try locked.keyStore.write(value, as: item, of: locked.id)
  }
}
