internal import CofferKeys
internal import CofferSystem

/// Destroys what every key of a vault hangs on: the device secret and the rotation in the key store, then the keybag.
/// Takes the same time at any size. Can be repeated after a crash. Under the key store's lock, so that nobody writes back
/// what it has destroyed.
struct KeyDestruction {
  let folder: VaultFolder
  let keyStore: any KeyStore
  let vault: VaultID

  func run() throws {
    // First that it has begun: from here on nothing opens, and the next wipe knows this one. A full disk must not keep the
    // keys; without the mark a crash leaves a folder that a wipe refuses, and that nothing opens.
    try? WipeMark(in: keyStore, for: vault, keybag: (try? Self.keybag(in: folder)) ?? nil).store(
      in: keyStore, for: vault)
    // Whatever keeps one half must not keep the other: each alone opens nothing.
    let inKeyStore = Result { try keyStore.removeAll(of: vault, keeping: [.wiped]) }
    let inFolder = Result { try destroyKeybag() }
    try inKeyStore.get()
    try inFolder.get()
  }

  static func keybag(in folder: VaultFolder) throws -> Keybag? {
    try folder.contents(of: VaultFormat.keybag).flatMap { try? Keybag(parsing: $0) }
  }

  private func destroyKeybag() throws {
    let files = folder.files
    try files.destroy(VaultFormat.keybag, in: folder.descriptor)
    // A change of the passcode that was cut may have left a keybag under its temporary name.
    for name in try files.names(in: folder.descriptor) where FileSystem.isUnfinishedReplacement(name) {
      try files.destroy(String(decoding: name, as: UTF8.self), in: folder.descriptor)
    }
    try folder.descriptor.sync()
  }
}

/// What the key store keeps of a vault from the beginning of its wipe to the end.
struct WipeMark: Equatable {
  /// What opens a copy that was made before.
  var hadRecoveryKey = false
  var hadEscrowKey = false

  /// What an earlier wipe knew, with what is there now.
  init(in keyStore: any KeyStore, for vault: VaultID, keybag: Keybag?) throws {
    if let bytes = try keyStore.read(.wiped, of: vault)?.withUnsafeBytes({ Array($0) }), bytes.count == 3 {
      (hadRecoveryKey, hadEscrowKey) = (bytes[1] != 0, bytes[2] != 0)
    }
    guard let summary = keybag.map(KeybagSummary.init) else { return }
    hadRecoveryKey = hadRecoveryKey || summary.hasRecoveryKey
    hadEscrowKey = hadEscrowKey || summary.escrowKey != nil
  }

  /// `u8 0 ‖ u8 recovery key ‖ u8 escrow key`.
  func store(in keyStore: any KeyStore, for vault: VaultID) throws {
    let bytes: [UInt8] = [0, hadRecoveryKey ? 1 : 0, hadEscrowKey ? 1 : 0]
    try keyStore.write(bytes.withUnsafeBytes { SecretBytes(copying: $0) }, as: .wiped, of: vault)
  }
}
