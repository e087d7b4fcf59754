public import CofferCrypto
public import CofferKeys
public import CofferSystem

/// Leave to change which other keys open a vault: whoever has it showed the passcode, or another key, just now.
public struct VaultAccess {
  var opened: LockedVault.Opened

  /// The company's key that opens the vault, too.
  public var escrowKey: HybridPublicKey? { opened.keybag.escrowSlot?.recipient }
}

/// A company's key in the keybag, and the clearing of a passcode with it. None of it needs a new passcode, and none takes
/// one away.
extension Vault {
  /// Seals the vault to a company's key in the place of any other, and gets ready for that key's holder to clear the
  /// passcode. Where both was done it does nothing. A crash leaves either key, and the passcode in any case.
  ///
  /// - Parameters:
  ///   - context: whom the vault belongs to, at most 1 KiB: a clearing is bound to it.
  /// - Returns: whether the keybag has changed.
  @discardableResult
  public func seal(
    toEscrowKey key: HybridPublicKey, context: [UInt8], with access: inout VaultAccess
  ) throws(VaultError) -> Bool {
    try VaultError.catching {
      guard !isReadOnly else { throw VaultError.olderThanAnchor }
      guard context.count <= EscrowRecord.contextLimit else { throw VaultError.settingTooLarge }
      let locked = try present()
      let isChanged = access.escrowKey != key
      if isChanged { try replaceEscrowKey(by: key, &access, of: locked) }
      try locked.withLock {
        let found = try locked.wrapped()
        guard found.bytes == access.opened.bytes else { throw VaultError.wrongPasscode }
        var record = try EscrowRecord(in: keyStore, for: id, on: found.device)
        if let exchange = record.exchange(of: found.bytes), exchange.context == context { return }
        try record.renew(for: found, master: access.opened.master, context: context, vault: id)
        try record.store(in: keyStore, for: id, on: found.device)
      }
      return isChanged
    }
  }

  /// Takes a company's key out of the keybag, where it is the one that is there; what was cleared with it opens nothing
  /// then. Copies of the vault from before open with it still.
  ///
  /// - Returns: whether the keybag has changed.
  @discardableResult
  public func unseal(fromEscrowKey key: HybridPublicKey, with access: inout VaultAccess) throws(VaultError) -> Bool {
    try VaultError.catching {
      guard !isReadOnly else { throw VaultError.olderThanAnchor }
      guard access.escrowKey == key else { return false }
      let locked = try present()
      try replaceEscrowKey(by: nil, &access, of: locked)
      try locked.withLock { try locked.forgetExchange() }
      return true
    }
  }

  /// What the device hands to its company; nil where there is nothing to hand in.
  public func escrowOffer() throws(VaultError) -> EscrowOffer? {
    try VaultError.catching {
      let locked = try present()
      return try locked.withLock {
        let found = try locked.wrapped()
        guard let slot = found.keybag.escrowSlot,
          let exchange = try EscrowRecord(in: keyStore, for: id, on: found.device).exchange(of: found.bytes)
        else { return nil }
        return try EscrowOffer(
          vault: id, context: exchange.context, escrowKey: slot.recipient, slot: slot.box,
          clearingKey: exchange.clearing.key.publicKey, signature: exchange.signature)
      }
    }
  }

  /// Takes a clearing that was made for this device with the key that the vault is sealed to: for an hour, whoever has its
  /// code can set a new passcode. Needs no passcode, and opens nothing.
  ///
  /// Throws `clearing` with everything as it was.
  public static func takeClearing(
    _ clearing: [UInt8], at path: String, keyStore: any KeyStore, files: FileSystem = FileSystem(),
    time: any TimeSource = SystemTime()
  ) throws(VaultError) {
    try VaultError.catching {
      let locked = try LockedVault(in: VaultFolder(opening: path, files: files), keyStore: keyStore, time: time)
      try locked.withLock { try locked.take(clearing) { _ in } }
    }
  }

  /// As above, for a vault that is open, locked or not, and where the company's key must be `key` and the vault be
  /// `context`'s.
  public func takeClearing(_ clearing: [UInt8], from key: HybridPublicKey, context: [UInt8]) throws(VaultError) {
    try VaultError.catching {
      let locked = try present()
      try locked.withLock {
        try locked.take(clearing) { try $0.require(key, context) }
      }
    }
  }

  /// Throws as a recovery with this code would before it asks for a new passcode. Changes nothing.
  public static func requireClearing(
    _ code: RecoveryKey, at path: String, keyStore: any KeyStore, files: FileSystem = FileSystem(),
    time: any TimeSource = SystemTime()
  ) throws(VaultError) {
    try VaultError.catching {
      let locked = try LockedVault(in: VaultFolder(opening: path, files: files), keyStore: keyStore, time: time)
      do {
        _ = try locked.master(clearedWith: code)
      } catch VaultError.clearing(.over) {
        try? locked.withLock { try locked.endPending() }
        throw VaultError.clearing(.over)
      }
    }
  }

  /// Ends what a clearing made ready, now that the passcode was shown: the clearing is erased, and so is the key that it was
  /// sealed to, so that the order and its code open nothing any more.
  public func endClearing(with access: VaultAccess) throws(VaultError) {
    try VaultError.catching {
      guard !isReadOnly, try keyStore.read(.escrow, of: id) != nil else { return }
      let locked = try present()
      try locked.withLock {
        let found = try locked.wrapped()
        guard found.bytes == access.opened.bytes else { return }
        var record = try EscrowRecord(in: keyStore, for: id, on: found.device)
        guard let exchange = record.exchange(of: found.bytes), !exchange.taken.isEmpty else { return }
        try record.renew(for: found, master: access.opened.master, context: exchange.context, vault: id)
        try record.store(in: keyStore, for: id, on: found.device)
      }
    }
  }

  /// Whether a clearing with this SHA-256 was taken, whatever became of it.
  public func hasTaken(clearing digest: [UInt8]) throws(VaultError) -> Bool {
    try VaultError.catching {
      try EscrowRecord(in: keyStore, for: id, on: present().device()).hasTaken(digest)
    }
  }

  /// Whether the key store has this device's record of the uses of a company's key. Without it, nobody knows of them.
  public func hasEscrowRecord() throws(VaultError) -> Bool {
    try VaultError.catching {
      try EscrowRecord.present(in: keyStore, for: id, on: present().device()) != nil
    }
  }

  /// What opened the vault without its passcode, or let it be opened, and was not recorded yet, the oldest first.
  public func unrecordedEscrowUses() throws(VaultError) -> [EscrowUse] {
    try VaultError.catching {
      guard try keyStore.read(.escrow, of: id) != nil else { return [] }
      let locked = try present()
      return try EscrowRecord(in: keyStore, for: id, on: locked.device()).uses
    }
  }

  /// They are recorded, durably.
  public func forgetEscrowUses(_ recorded: [EscrowUse]) throws(VaultError) {
    try VaultError.catching {
      let locked = try present()
      try locked.withLock {
        let device = try locked.device()
        var record = try EscrowRecord(in: keyStore, for: id, on: device)
        guard record.uses.starts(with: recorded) else { return }
        record.uses.removeFirst(recorded.count)
        try record.store(in: keyStore, for: id, on: device)
      }
    }
  }

  private func present() throws -> LockedVault {
    let locked = try LockedVault(in: folder, keyStore: keyStore, time: time, tries: tries)
    guard locked.id == id else { throw VaultError.damaged(what: VaultFormat.description) }
    return locked
  }

  private func replaceEscrowKey(by key: HybridPublicKey?, _ access: inout VaultAccess, of locked: LockedVault) throws {
    var opened = access.opened
    try locked.withLock {
      let found = try locked.wrapped()
      // Whoever changed it since may have changed the passcode that was shown.
      guard found.bytes == opened.bytes else { throw VaultError.wrongPasscode }
      var keybag = found.keybag
      if let key {
        try keybag.setEscrowKey(key, master: opened.master, vault: id)
      } else {
        keybag.escrowSlot = nil
      }
      keybag.authenticate(on: found.device, master: opened.master, for: locked.description)
      let bytes = try keybag.encoded()
      let (before, after) = (Digest.sha256(found.bytes), Digest.sha256(bytes))
      try KeybagChange(locked: locked, present: [found.rotation], component: nil, bytes: bytes).run(
        announce: { try followKeybag(before, next: after) }, conclude: { try followKeybag(after, next: nil) })
      opened = LockedVault.Opened(keybag: keybag, bytes: bytes, master: opened.master, keys: opened.keys)
    }
    access.opened = opened
  }
}

extension EscrowRecord {
  /// Begins a new exchange for the keybag that is there, and so ends any other; none where no company's key opens it.
  mutating func renew(for found: LockedVault.Wrapped, master: SecretKey, context: [UInt8], vault: VaultID) throws {
    try renew(for: found.keybag, found.bytes, master: master, context: context, vault: vault)
  }

  mutating func renew(
    for keybag: Keybag, _ bytes: [UInt8], master: SecretKey, context: [UInt8], vault: VaultID
  ) throws {
    endExchange()
    guard let slot = keybag.escrowSlot else { return }
    let (clearing, proof) = (HybridKey(), try EscrowProof(master: master, vault: vault))
    let message = EscrowOffer.message(vault, context, slot, clearingKey: clearing.publicKey)
    exchange = Exchange(
      keybagDigest: Digest.sha256(bytes), context: context, recipient: slot.recipient,
      clearing: StoredHybridKey(key: clearing), proof: proof.key.verifyingKey,
      signature: proof.key.signature(for: message))
  }
}
