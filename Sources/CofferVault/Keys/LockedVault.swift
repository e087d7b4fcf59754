internal import CofferCrypto
internal import CofferKeys
internal import CofferSystem
internal import Foundation

/// A vault whose keys are still wrapped: its headers, and the key store that holds its device's part.
struct LockedVault {
  let folder: VaultFolder
  let description: VaultDescription
  let keyStore: any KeyStore
  let time: any TimeSource
  /// One try at a time: what waits here is not counted yet, so that two right passcodes at the same moment do not delay
  /// each other, and no more than one derivation's memory is taken.
  private let tries: NSLock

  var id: VaultID { description.id }

  /// Throws `notAVault` and `newerFormat`.
  ///
  /// - Parameter tries: of a vault that is open, whose tries may come from several threads.
  init(in folder: VaultFolder, keyStore: any KeyStore, time: any TimeSource, tries: NSLock = NSLock()) throws {
    guard let bytes = try folder.contents(of: VaultFormat.description) else { throw VaultError.notAVault }
    self.folder = folder
    description = try VaultDescription(parsing: bytes)
    self.keyStore = keyStore
    self.time = time
    self.tries = tries
  }

  /// A keybag as it was read, with what its device has for it.
  struct Wrapped {
    let keybag: Keybag
    /// The file's bytes.
    let bytes: [UInt8]
    let device: DeviceKeys
    let rotation: SecretKey
  }

  /// A keybag that somebody opened.
  struct Opened {
    let keybag: Keybag
    let bytes: [UInt8]
    let master: SecretKey
    let keys: UnlockedKeys
  }

  /// Derives the key of a passcode: scrypt's, unless a test has it at hand.
  typealias Derive = (PasscodeDerivation, SecretBytes) throws -> SecretKey

  /// Opens the keybag with a passcode, through the gate: **the only way to a derivation of a passcode to be tried**.
  ///
  /// Throws `wiped`, `deviceSecretMissing`, `damaged`, `outdatedKeybag`, `tooManyAttempts`, `noMemory` before `passcode` is called,
  /// and `emptyPasscode`, `wrongPasscode` and `noMemory` after it. Where there was no memory no try is counted.
  func unlock(passcode: () throws -> SecretBytes, deriving derive: Derive = { try $0.key(for: $1) }) throws -> Opened {
    // What refuses any passcode is said before somebody is asked for one.
    try withLock {
      try endWipe()
      let wrapped = try self.wrapped()
      try requireOpen(gate(for: wrapped))
      // Before somebody types one for nothing. There may be less by then.
      try wrapped.keybag.derivation.requireMemory()
    }
    let passcode = try AskedPasscode(asking: passcode).value
    // No vault has it: a slip of the finger or an empty file is no try.
    try passcode.requirePasscode()
    return try tries.withLock { try self.try(passcode, deriving: derive) }
  }

  private func `try`(_ passcode: SecretBytes, deriving derive: Derive) throws -> Opened {
    let (wrapped, attempt) = try withLock {
      let wrapped = try self.wrapped()
      let gate = gate(for: wrapped)
      try requireOpen(gate)
      return (wrapped, try gate.begin())
    }
    let derived: SecretKey
    do {
      derived = try derive(wrapped.keybag.derivation, passcode)
    } catch CryptoError.noMemory(let byteCount) {
      try withLock {
        try requireUnwiped()
        try gate(for: wrapped).takeBack(attempt)
      }
      throw CryptoError.noMemory(byteCount: byteCount)
    }
    let passcodeKey = wrapped.device.passcodeKey(derived, rotation: wrapped.rotation)
    guard let master = try? SecretKey(unwrapping: wrapped.keybag.passcodeSlot, under: passcodeKey) else {
      try withLock {
        try requireUnwiped()
        let verdict = try gate(for: wrapped).fail(attempt, mark: wrapped.device.mark(derived))
        if verdict == .spent { try wipeKeys() }
      }
      throw VaultError.wrongPasscode
    }
    let keys = Result { try wrapped.keybag.keys(under: master, description) }
    try withLock {
      try requireUnwiped()
      // Also where the rest is damaged: the passcode was right.
      try gate(for: wrapped).succeed()
      if case .success = keys { try settle(wrapped) }
    }
    return Opened(keybag: wrapped.keybag, bytes: wrapped.bytes, master: master, keys: try keys.get())
  }

  /// The keybag, authenticated for this device, and the component of the rotation that it was made with.
  func wrapped() throws -> Wrapped {
    try requireUnwiped()
    let bytes = try folder.contents(of: VaultFormat.keybag)
    guard let secret = try keyStore.read(.deviceSecret, of: id) else {
      // Neither half is left: nobody lost them one by one.
      throw bytes == nil ? VaultError.wiped : .deviceSecretMissing
    }
    guard let bytes else { throw VaultError.damaged(what: VaultFormat.keybag) }
    let keybag = try Keybag(parsing: bytes)
    let device = try DeviceKeys(secret: secret, vault: id)
    guard keybag.isAuthentic(description, on: device) else {
      throw VaultError.damaged(what: "coffer.json or keybag.json")
    }
    guard let component = try rotation().component(committedBy: keybag.rotationCommitment) else {
      throw VaultError.outdatedKeybag
    }
    return Wrapped(keybag: keybag, bytes: bytes, device: device, rotation: component)
  }

  /// A wipe that has begun is final, whatever it has left: what was read before it opens nothing, and is not written back.
  private func requireUnwiped() throws {
    guard try keyStore.read(.wiped, of: id) == nil else { throw VaultError.wiped }
  }

  /// Destroys what a wipe that was cut has left in the key store: whoever hears of it is told that the keys are destroyed. Under the
  /// key store's lock.
  private func endWipe() throws {
    if try keyStore.read(.wiped, of: id) != nil { try keyStore.removeAll(of: id, keeping: [.wiped]) }
  }

  func rotation() throws -> RotationRecord {
    guard let bytes = try keyStore.read(.rotation, of: id), let record = try? RotationRecord(decoding: bytes) else {
      throw VaultError.damaged(what: "the key store's rotation")
    }
    return record
  }

  func gate(for wrapped: Wrapped) -> PasscodeGate {
    PasscodeGate(
      keyStore: keyStore, vault: id, device: wrapped.device, time: time,
      isWiping: wrapped.keybag.wipesAfterTenFailures)
  }

  /// Ends a change of the passcode that a crash left half done: the keybag that is there has been proved to open, so
  /// that the other's component is needed no more.
  private func settle(_ wrapped: Wrapped) throws {
    let record = try rotation()
    guard record.components.count > 1, try folder.contents(of: VaultFormat.keybag) == wrapped.bytes else { return }
    try keyStore.write(RotationRecord([wrapped.rotation]).encoded(), as: .rotation, of: id)
  }

  private func requireOpen(_ gate: PasscodeGate) throws {
    switch try gate.verdict() {
    case .open: break
    case .delayed(let seconds): throw VaultError.tooManyAttempts(retryAfterSeconds: seconds)
    case .spent: try wipeKeys()
    }
  }

  /// Destroys the keys and says so. Under the key store's lock.
  private func wipeKeys() throws -> Never {
    try KeyDestruction(folder: folder, keyStore: keyStore, vault: id).run()
    throw VaultError.wiped
  }

  /// The key store's lock; a key store without anything for the vault has lost the secret, or it was wiped.
  func withLock<Result>(_ body: () throws -> Result) throws -> Result {
    do {
      return try keyStore.withLock(of: id, body)
    } catch KeyStoreError.nothingKept {
      throw try folder.contents(of: VaultFormat.keybag) == nil ? VaultError.wiped : .deviceSecretMissing
    }
  }
}

extension SecretBytes {
  /// Throws `emptyPasscode`: one that every passcode of a vault is held to.
  func requirePasscode() throws { if count == 0 { throw VaultError.emptyPasscode } }
}

/// Keeps the failure of whoever asks for the passcode (an interrupted prompt, an unreadable file) apart from the vault's.
struct AskedPasscode {
  struct Failure: Error { let cause: any Error }
  let value: SecretBytes

  init(asking passcode: () throws -> SecretBytes) throws {
    do { value = try passcode() } catch { throw Failure(cause: error) }
  }
}

extension Vault {
  /// What opens a vault that is open already, for whoever has its passcode: the keybag is read again, and the attempt
  /// goes through the gate. Throws `wrongPasscode`, `tooManyAttempts`, `wiped`, and what the headers' damage says.
  static func unlocked(
    in folder: VaultFolder, id: VaultID, keyStore: any KeyStore, time: any TimeSource, passcode: SecretBytes,
    tries: NSLock = NSLock()
  ) throws -> LockedVault.Opened {
    let locked = try LockedVault(in: folder, keyStore: keyStore, time: time, tries: tries)
    guard locked.id == id else { throw VaultError.damaged(what: VaultFormat.description) }
    return try locked.unlock(passcode: { passcode })
  }
}
