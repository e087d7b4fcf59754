internal import CofferCrypto
internal import CofferKeys
internal import CofferSystem

/// Puts a keybag in the place of another, with a new component of the rotation, so that a crash at any moment leaves
/// exactly one of them that opens:
///
/// 1. the key store has both components;
/// 2. the anchor expects the old keybag or the new one;
/// 3. the new keybag takes the old one's place: from here on the new passcode opens the vault, before it the old one;
/// 4. the key store has the new component only: the old keybag opens with nothing any more;
/// 5. the anchor expects the new keybag.
///
/// Where the passcode stays, so does the component, and 1 and 4 are left out.
///
/// What a crash leaves of it is ended by the next opening: see ``LockedVault/unlock(passcode:deriving:)`` for 4, and the
/// vault's opening for 5. Runs under the key store's lock.
struct KeybagChange {
  let locked: LockedVault
  /// The components of the rotation that keybags which are there may have.
  let present: [SecretKey]
  /// Nil where the new keybag has the present one.
  let component: SecretKey?
  /// The new keybag's bytes.
  let bytes: [UInt8]

  /// - Parameters:
  ///   - announce: makes the anchor accept the new keybag as well.
  ///   - conclude: makes the anchor accept no other.
  func run(announce: () throws -> Void, conclude: () throws -> Void) throws {
    if let component { try write(present + [component]) }
    try announce()
    try locked.folder.files.replaceDurably(VaultFormat.keybag, in: locked.folder.descriptor, with: bytes)
    if let component { try write([component]) }
    try conclude()
  }

  private func write(_ components: [SecretKey]) throws {
    try locked.keyStore.write(RotationRecord(components).encoded(), as: .rotation, of: locked.id)
  }
}
