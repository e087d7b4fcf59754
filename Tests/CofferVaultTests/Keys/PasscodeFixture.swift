import CofferCrypto
import CofferFiles
import CofferKeys
import CofferSystem
import CofferTestSupport
import CofferVaultTestSupport
import Foundation
import Synchronization

@testable import CofferVault

/// A vault with one file whose keys are changed while everything that is stored is recorded. The derivation costs
/// nothing.
final class PasscodeFixture {
  static let old = "correct horse"
  static let new = "battery staple"

  let folder: MemoryFolder
  let recorder: StorageRecorder
  let time = HeldTime()
  var disk: String { folder("disk") }
  /// How many steps were recorded before the change.
  private(set) var start = 0
  private let derived = Mutex<[[UInt8]: SecretKey]>([:])

  init(options: KeybagOptions = KeybagOptions()) throws {
    folder = try MemoryFolder()
    try FileSystem().makeDirectory(folder("disk"))
    recorder = try StorageRecorder(recording: folder("disk"), except: [VaultFormat.ballast, VaultFormat.lock])
    let files = FileSystem(faults: recorder)
    let derivation = try VaultFixture.derivation()
    let passcode = VaultFixture.passcode(Self.old)
    let key = try derivation.key(for: passcode)
    derived.withLock { $0[Self.name(derivation, passcode)] = key }
    let vault = try Vault.create(
      at: disk + "/vault", keyStore: keyStore(disk, files), passcode: passcode, derivation: derivation, keybag: options,
      files: files, time: time, options: TestVault.options)
    var held = HeldFiles()
    try VaultChange.put(path: "kept", bytes: [1, 2, 3], permissions: 0o600)
      .apply(to: vault, holding: &held, scratch: folder("scratch"))
    try vault.close()
    start = recorder.log.steps.count
  }

  /// What was recorded so far is no longer cut.
  func startHere() { start = recorder.log.steps.count }

  func keyStore(_ disk: String, _ files: FileSystem = FileSystem()) -> FileKeyStore {
    FileKeyStore(path: disk + "/keys", files: files)
  }

  /// scrypt for what the vault was made with; for the rest, something that costs nothing.
  func derive(_ derivation: PasscodeDerivation, _ passcode: SecretBytes) throws -> SecretKey {
    let name = Self.name(derivation, passcode)
    return try derived.withLock { $0[name] } ?? SecretKey(SecretBytes(copying: Digest.sha256(name)))
  }

  private static func name(_ derivation: PasscodeDerivation, _ passcode: SecretBytes) -> [UInt8] {
    derivation.salt + passcode.withUnsafeBytes { Array($0) }
  }

  func open(_ passcode: String, on disk: String, options: VaultOptions = TestVault.options) throws -> Vault {
    try Vault.openingErrors {
      let place = try VaultPlace(
        at: disk + "/vault", files: FileSystem(), keyStore: keyStore(disk), time: time,
        scheduler: VaultOptions().scheduler)
      let opened = try place.locked.unlock(passcode: { VaultFixture.passcode(passcode) }, deriving: derive)
      return try place.vault(opened, options: options)
    }
  }

  func change(from old: String = old, to new: String = new, options: KeybagOptions = KeybagOptions()) throws {
    try change(from: old, to: new, options: options, on: disk, files: FileSystem(faults: recorder))
  }

  func change(
    from old: String = old, to new: String = new, options: KeybagOptions = KeybagOptions(), on disk: String,
    files: FileSystem
  ) throws {
    try Vault.changePasscode(
      at: disk + "/vault", keyStore: keyStore(disk, files), old: { VaultFixture.passcode(old) },
      new: { VaultFixture.passcode(new) }, options: options, files: files, time: time,
      vaultOptions: TestVault.options, deriving: derive)
  }

  func recover(
    _ key: WayBack, to new: String = new, on disk: String? = nil, keyStore: FileKeyStore? = nil,
    options: KeybagOptions = KeybagOptions(), vaultOptions: VaultOptions = TestVault.options
  ) throws -> Vault {
    let files = FileSystem(faults: recorder)
    let disk = disk ?? self.disk
    return try Vault.recover(
      at: disk + "/vault", keyStore: keyStore ?? self.keyStore(disk, files), with: key,
      passcode: { _ in VaultFixture.passcode(new) }, derivation: VaultFixture.derivation(), keybag: options,
      files: files,
      time: time, vaultOptions: vaultOptions, deriving: derive)
  }

  /// What opening with a passcode comes to: nil where it opens, and can be written to and read.
  func refusal(_ passcode: String, on disk: String) throws -> VaultError? {
    do {
      let vault = try open(passcode, on: disk)
      defer { try? vault.close() }
      if vault.isReadOnly { return .olderThanAnchor }
      guard try vault.contents(of: VaultPath("kept")) == [1, 2, 3] else { return .damaged(what: "the file") }
      try vault.setSetting("after", to: [1])
      return nil
    } catch let error as VaultError {
      return error
    }
  }

  /// Calls `body` with what a crash leaves at each step since the start, once with all that was stored and some times
  /// with a part of it; with the number of steps that were made, and a function that puts it on a new disk.
  func cuts(reorderings: Int, _ body: (Int, CrashImage.Fate, (String) throws -> Void) throws -> Void) throws {
    var generator = SeededGenerator(seed: 7)
    var crashed = CrashDisk()
    for (position, step) in recorder.log.steps.enumerated() {
      crashed.apply(step)
      guard position >= start - 1 else { continue }
      let nodes = crashed.unsynced
      var fates: [CrashImage.Fate] = [.everything]
      if let node = nodes.randomElement(using: &generator) {
        fates += [.nothing, .allBut(node), .only(node)]
        fates += (0..<reorderings).map { _ in .some(0.5) }
      }
      for fate in fates {
        let image = CrashImage(of: crashed, fate: fate, generator: &generator)
        try body(position + 1 - start, fate) { try image.write(to: $0) }
      }
    }
  }
}
