internal import CofferCrypto
internal import CofferKeys
internal import CofferSystem

/// Each under the key store's lock, but for what only reads.
extension LockedVault {
  func device() throws -> DeviceKeys {
    guard let secret = try keyStore.read(.deviceSecret, of: id) else { throw VaultError.deviceSecretMissing }
    return try DeviceKeys(secret: secret, vault: id)
  }

  func forgetExchange() throws {
    let device = try device()
    var record = try EscrowRecord(in: keyStore, for: id, on: device)
    record.endExchange()
    try record.store(in: keyStore, for: id, on: device)
  }

  func take(_ clearing: [UInt8], _ require: (EscrowRecord.Exchange) throws -> Void) throws {
    let found = try wrapped()
    var record = try EscrowRecord(in: keyStore, for: id, on: found.device)
    guard var exchange = record.exchange(of: found.bytes), found.keybag.escrowSlot != nil else {
      throw VaultError.clearing(.noOffer)
    }
    try require(exchange)
    let digest = Digest.sha256(clearing)
    guard !exchange.taken.contains(digest) else { throw VaultError.clearing(.taken) }
    guard exchange.taken.count < EscrowRecord.takenLimit else { throw VaultError.clearing(.tooMany) }
    let genuine: Clearing
    do throws(ClearingFault) {
      genuine = try Clearing(
        opening: clearing, with: exchange.clearing.key, in: exchange.binding(id), proof: exchange.proof)
    } catch {
      throw VaultError.clearing(error)
    }
    guard time.now().seconds <= genuine.notAfter else { throw VaultError.clearing(.expired) }
    exchange.taken.append(digest)
    exchange.pending = .init(wrapped: genuine.wrapped, moment: time.sinceBoot(), time: time.now().seconds)
    record.exchange = exchange
    // In the same write, so that no clearing holds that nobody hears of.
    record.note(EscrowUse(means: .cleared, time: time.now().seconds))
    try record.store(in: keyStore, for: id, on: found.device)
  }

  /// Erases a clearing whose time is over. Its key stays until the next passcode, which can make another: the company may
  /// clear the passcode once more.
  func endPending() throws {
    let found = try wrapped()
    var record = try EscrowRecord(in: keyStore, for: id, on: found.device)
    guard var exchange = record.exchange(of: found.bytes), exchange.pending?.isOver(at: time) == true else { return }
    exchange.pending = nil
    record.exchange = exchange
    try record.store(in: keyStore, for: id, on: found.device)
  }

  /// The master key of a clearing that waits here, for whoever has its code.
  func master(clearedWith code: RecoveryKey) throws -> SecretKey {
    let found = try wrapped()
    guard let exchange = try EscrowRecord(in: keyStore, for: id, on: found.device).exchange(of: found.bytes),
      let pending = exchange.pending
    else { throw VaultError.clearing(.nothingPending) }
    guard !pending.isOver(at: time) else { throw VaultError.clearing(.over) }
    guard
      let master = try? SecretKey(
        unwrapping: pending.wrapped, under: Clearing.codeKey(code, exchange.binding(id))),
      equalInConstantTime(master.commitment, found.keybag.masterCommitment)
    else { throw VaultError.clearing(.wrongCode) }
    return master
  }

  /// Notes, before anything opens, what is going to open the vault without its passcode.
  func note(_ use: EscrowUse, on device: DeviceKeys) throws {
    var record = try EscrowRecord(in: keyStore, for: id, on: device)
    record.note(use)
    try record.store(in: keyStore, for: id, on: device)
  }

  /// Begins a new exchange after a new passcode, with whom the last one was. Where this fails there is none until the next
  /// unlock: the last one ended with its keybag.
  func renewExchange(_ keybag: Keybag, _ bytes: [UInt8], master: SecretKey, on device: DeviceKeys) throws {
    guard try keyStore.read(.escrow, of: id) != nil else { return }
    var record = try EscrowRecord(in: keyStore, for: id, on: device)
    guard let last = record.exchange else { return }
    if last.recipient == keybag.escrowSlot?.recipient {
      try record.renew(for: keybag, bytes, master: master, context: last.context, vault: id)
    } else {
      record.endExchange()
    }
    try record.store(in: keyStore, for: id, on: device)
  }
}

extension EscrowRecord.Exchange {
  func require(_ key: HybridPublicKey, _ context: [UInt8]) throws {
    guard self.context == context else { throw VaultError.clearing(.noOffer) }
    guard recipient == key else { throw VaultError.clearing(.otherKey) }
  }

  func binding(_ vault: VaultID) -> Clearing.Binding {
    Clearing.Binding(vault: vault, context: context, clearingKey: clearing.key.publicKey)
  }
}
