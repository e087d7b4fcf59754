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
    // keys. Until there is a mark, the place tells the next wipe that this was the vault.
    let mark = WipeMark(of: try? Self.keybag(in: folder), in: keyStore, for: vault)
    func leaveMark() -> Bool { (try? mark.store(in: keyStore, for: vault)) != nil }
    // Whatever keeps one half must not keep the other: each alone opens nothing.
    let inKeyStore = Result {
      let isMarked = leaveMark()
      let removed = Result { try keyStore.removeAll(of: vault, keeping: isMarked ? [.wiped] : [.wiped, .place]) }
      // On a full disk there is room for it now, also where something has stayed.
      if !isMarked, leaveMark() { try keyStore.removeAll(of: vault, keeping: [.wiped]) }
      try removed.get()
    }
    let inFolder = Result { try destroyKeybag() }
    try inKeyStore.get()
    try inFolder.get()
  }

  /// Nil where there is none, and where what lies there is none. Throws what keeps it from being read.
  static func keybag(in folder: VaultFolder) throws -> Keybag? {
    do {
      return try folder.contents(of: VaultFormat.keybag).flatMap { try? Keybag(parsing: $0) }
    } catch let error as VaultError {
      if case .damaged = error { return nil }
      throw error
    }
  }

  /// Whether nothing is left of a keybag but, at most, the zeros that one was overwritten with. What cannot be read may be one.
  static func isKeybagDestroyed(in folder: VaultFolder) throws -> Bool {
    try ([VaultFormat.keybag] + unfinishedKeybags(in: folder)).allSatisfy { name in
      guard let status = try folder.files.status(of: name, in: folder.descriptor) else { return true }
      guard status.kind == .file, let bytes = try? folder.contents(of: name) else { return false }
      return bytes.allSatisfy { $0 == 0 }
    }
  }

  /// A change of the passcode that was cut may have left a keybag under its temporary name.
  private static func unfinishedKeybags(in folder: VaultFolder) throws(SystemError) -> [String] {
    try folder.files.names(in: folder.descriptor).filter(FileSystem.isUnfinishedReplacement)
      .map { String(decoding: $0, as: UTF8.self) }
  }

  private func destroyKeybag() throws {
    // Whatever keeps one must not keep another.
    var failure: SystemError?
    func destroy(_ name: String) {
      do {
        try folder.files.destroy(name, in: folder.descriptor, limit: VaultFormat.headerLimit)
      } catch {
        failure = failure ?? error
      }
    }
    destroy(VaultFormat.keybag)
    do { try Self.unfinishedKeybags(in: folder).forEach(destroy) } catch { failure = failure ?? error }
    if let failure { throw failure }
    try folder.descriptor.sync()
  }
}

/// What the key store keeps of a vault from the beginning of its wipe to the end: what opens a copy that was made before,
/// where that is known.
struct WipeMark: Equatable {
  private(set) var hadRecoveryKey: Bool?
  private(set) var hadEscrowKey: Bool?

  /// What a wipe that begins knows: what the folder's keybag says, and an earlier wipe's mark.
  init(of keybag: Keybag?, in keyStore: any KeyStore, for vault: VaultID) {
    let summary = keybag.map(KeybagSummary.init)
    (hadRecoveryKey, hadEscrowKey) = (summary?.hasRecoveryKey, summary.map { $0.escrowKey != nil })
    guard (try? keyStore.keeps(.wiped, of: vault)) != false else { return }
    // What is there now may be of another copy: it makes a key known, and none unknown.
    let mark = try? WipeMark(in: keyStore, for: vault)
    if hadRecoveryKey != true { hadRecoveryKey = mark?.hadRecoveryKey }
    if hadEscrowKey != true { hadEscrowKey = mark?.hadEscrowKey }
  }

  /// The mark of a wipe that was begun; nil where there is none, or none that makes sense.
  init?(in keyStore: any KeyStore, for vault: VaultID) throws {
    let kept = Result { () throws(KeyStoreError) in try keyStore.read(.wiped, of: vault) }
    switch kept {
    case .failure(.damaged), .failure(.exposed): return nil
    case .failure(let error): throw error
    case .success(let value):
      guard let bytes = value?.withUnsafeBytes({ Array($0) }), bytes.count == 3, bytes[0] == 0 else { return nil }
      (hadRecoveryKey, hadEscrowKey) = (Self.answer(bytes[1]), Self.answer(bytes[2]))
    }
  }

  /// `u8 0 ‖ u8 recovery key ‖ u8 escrow key`, each 0 for no, 1 for yes, and 2 where nothing says.
  func store(in keyStore: any KeyStore, for vault: VaultID) throws {
    let bytes = [0, Self.byte(hadRecoveryKey), Self.byte(hadEscrowKey)]
    try keyStore.write(bytes.withUnsafeBytes { SecretBytes(copying: $0) }, as: .wiped, of: vault)
  }

  private static func answer(_ byte: UInt8) -> Bool? { byte > 1 ? nil : byte == 1 }

  private static func byte(_ answer: Bool?) -> UInt8 { answer.map { $0 ? 1 : 0 } ?? 2 }
}
