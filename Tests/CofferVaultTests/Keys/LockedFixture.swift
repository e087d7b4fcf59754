import CofferCrypto
import CofferKeys
import CofferSystem
import CofferTestSupport
import Synchronization

@testable import CofferVault

/// The headers of a vault and a key store in memory, without an index, and with a derivation that costs nothing.
final class LockedFixture: Sendable {
  enum Outcome: Equatable {
    case right, wrong, wiped, endedBefore, endedAfter, noMemory
    case refused(UInt64)
    case other(String)
  }

  let place: MemoryFolder
  let store = MemoryKeyStore()
  let time = HeldTime()
  let id = VaultID()
  private let derivations = Atomic(0)

  var derivationCount: Int { derivations.load(ordering: .relaxed) }

  var folder: VaultFolder {
    get throws { try VaultFolder(opening: place("vault"), files: FileSystem()) }
  }

  init(options: KeybagOptions = KeybagOptions()) throws {
    place = try MemoryFolder()
    try FileSystem().makeDirectory(place("vault"))
    let secret = SecretKey().secretBytes
    let device = try DeviceKeys(secret: secret, vault: id)
    let (rotation, master) = (SecretKey(), SecretKey())
    try store.write(secret, as: .deviceSecret, of: id)
    try store.write(RotationRecord([rotation]).encoded(), as: .rotation, of: id)
    try store.write(AttemptRecord().secretBytes(key: device.attempts), as: .attempts, of: id)
    let description = VaultDescription(id: id)
    let derivation = try PasscodeDerivation(costExponent: 14, salt: Randomness.bytes(16))
    var (keybag, _) = try Keybag.make(derivation: derivation, master: master)
    try keybag.apply(options, master: master, vault: id)
    try keybag.lock(
      with: .init(
        derivation: derivation, derived: derived("right", derivation), device: device, rotation: rotation,
        master: master),
      for: description)
    let folder = try folder
    try folder.files.replaceDurably(VaultFormat.keybag, in: folder.descriptor, with: keybag.encoded())
    try folder.files.replaceDurably(VaultFormat.description, in: folder.descriptor, with: description.bytes)
  }

  /// What stands for scrypt.
  func derived(_ passcode: String, _ derivation: PasscodeDerivation) throws -> SecretKey {
    try SecretKey(SecretBytes(copying: Digest.sha256(derivation.salt + Array(passcode.utf8))))
  }

  func verdict() throws -> PasscodeGate.Verdict {
    let locked = try LockedVault(in: folder, keyStore: store, time: time)
    return try locked.withLock { try locked.gate(for: locked.wrapped()).verdict() }
  }

  func attempt(_ passcode: String, hasMemory: Bool = true) -> Outcome {
    let hasDerived = Atomic(false)
    do {
      let locked = try LockedVault(in: folder, keyStore: store, time: time)
      let derive: LockedVault.Derive = { [self] derivation, bytes in
        hasDerived.store(true, ordering: .relaxed)
        guard hasMemory else { throw CryptoError.noMemory(byteCount: derivation.memory) }
        derivations.wrappingAdd(1, ordering: .relaxed)
        return try derived(String(decoding: bytes.withUnsafeBytes { Array($0) }, as: UTF8.self), derivation)
      }
      _ = try locked.unlock(passcode: { VaultFixture.passcode(passcode) }, deriving: derive)
      return .right
    } catch VaultError.wrongPasscode {
      return .wrong
    } catch CryptoError.noMemory(_) {
      return .noMemory
    } catch VaultError.wiped {
      return .wiped
    } catch VaultError.tooManyAttempts(let seconds) {
      return .refused(seconds)
    } catch KeyStoreError.system(_) {
      return hasDerived.load(ordering: .relaxed) ? .endedAfter : .endedBefore
    } catch {
      return .other("\(error)")
    }
  }
}

extension SecretBytes {
  convenience init(copying bytes: [UInt8]) {
    self.init(count: bytes.count) { $0.copyBytes(from: bytes) }
  }
}
