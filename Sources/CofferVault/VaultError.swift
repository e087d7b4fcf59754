public import CofferCrypto
public import CofferFiles
public import CofferKeys
public import CofferSystem

/// Why the vault refuses or fails. No case carries a name, a path or key material.
public enum VaultError: Error, Equatable, Sendable {
  /// There is nothing at the vault's path.
  case noVault
  /// The folder does not hold a vault.
  case notAVault
  /// The folder given for a new vault is not empty.
  case folderNotEmpty
  /// The vault was made by a newer version of the program, with this format.
  case newerFormat(Int)
  /// The vault is locked, and files of this class can be read only while it is not.
  case locked
  /// Somebody reads the file as a whole, and its key cannot change meanwhile.
  case busy
  /// The passcode is empty, and no vault's is. Nothing was counted.
  case emptyPasscode
  /// The passcode is wrong.
  case wrongPasscode
  /// Too many passcodes were wrong: none is tried for this many seconds.
  case tooManyAttempts(retryAfterSeconds: UInt64)
  /// The vault's keys were destroyed.
  case wiped
  /// What is to be wiped may be a copy, whose keys are the vault's, too.
  case maybeCopy
  /// A copy is to get a new passcode, while the vault itself lies in another folder of this device.
  case copyOfPresentVault
  /// What is to be wiped has another keybag than this device's vault of that id.
  case foreignKeybag
  /// What is to be wiped is no vault that this key store has keys of.
  case nothingToWipe
  /// The keybag is one from before the passcode was changed: no passcode opens it.
  case outdatedKeybag
  /// The vault has no recovery key.
  case noRecoverySlot
  /// The recovery key is not this vault's, or was replaced.
  case wrongRecoveryKey
  /// No company's key opens the vault.
  case noEscrowSlot
  /// The company's private key is not the one that opens the vault.
  case wrongEscrowKey
  /// The company's key has not cleared the passcode.
  case clearing(ClearingFault)
  /// The key store holds no secret for this vault, so no passcode can open it here.
  case deviceSecretMissing
  /// Another process holds the vault; its process id where it is known.
  case inUse(holder: Int32?)
  /// Stored bytes are not what was written. `what` names the part, never a file.
  case damaged(what: String)
  /// The vault is older than the newest state this device has seen, or a copy that went another way. It can be read.
  case olderThanAnchor

  case notFound
  case exists
  case notADirectory
  case isADirectory
  case directoryNotEmpty
  case invalidName(InvalidName)
  /// A directory cannot be moved into itself.
  case moveIntoItself
  /// A file is larger than a vault can hold (1 PiB).
  case tooLarge
  /// A symbolic link's target is empty or longer than 4,095 bytes.
  case invalidLink
  /// Reading needs a symbolic link, or the operation needs a file, and what is there is something else.
  case wrongKind
  /// A file has as many names as it can have.
  case tooManyLinks
  /// A folder has one name, and gets no second one.
  case folderLink
  /// A path leads through more than 40 symbolic links, or in a circle.
  case linkLoop
  /// A time has a second or more of nanoseconds.
  case invalidTime
  /// More names of a folder share one hash than a record holds. Nobody can bring this about without the vault's keys.
  case nameCollisions
  /// There is no extended attribute of that name.
  case noSuchAttribute
  /// An extended attribute of that name is there already.
  case attributeExists
  /// An extended attribute's name is empty, longer than 255 bytes, or has a zero byte.
  case invalidAttributeName
  /// An extended attribute's value is longer than 64 KiB.
  case attributeTooLarge
  /// A file has as many extended attributes as it can have.
  case tooManyAttributes
  /// The handle is closed, or was not opened for this.
  case badHandle
  /// The root folder can be neither moved nor removed.
  case rootFolder

  /// A setting's name or value is larger than the vault keeps.
  case settingTooLarge

  /// The source changed while it was read.
  case sourceChanged
  /// What was to be imported is not genuine data in RNCryptor's format, or nothing can be exported with this secret.
  case rncryptor(RNCryptorError)
  /// The caller asked to stop.
  case cancelled
  /// The disk is full.
  case full
  /// The disk of the vault's folder can only be read, and whoever opens a vault writes to it.
  case readOnlyDisk
  /// The system has not so much memory as a try of a passcode takes; nothing was tried.
  case noMemory(byteCount: Int)
  /// The vault's disk is full, or that of its key store, so that what was changed last is not stored.
  case unstored
  case system(SystemError)
  case keyStore(KeyStoreError)
  /// SQLite failed with this extended result code.
  case database(Int32)
  /// A commit failed; the vault must be opened again.
  case needsReopening
}

extension VaultError: CustomStringConvertible {
  public var description: String {
    switch self {
    case .noVault: "there is no vault at this place; make one with: coffer init"
    case .notAVault: "this folder is not a vault"
    case .folderNotEmpty: "the folder is not empty; choose one that is empty or does not exist"
    case .newerFormat(let version):
      "the vault has format \(version), from a newer version of Coffer; this one reads format \(VaultFormat.version)"
    case .locked: "the vault is locked; unlock it with: coffer unlock"
    case .busy: "the file is being read; its protection class can be changed when that is done"
    case .emptyPasscode: "the passcode is empty; nothing was tried"
    case .wrongPasscode: "the passcode is wrong"
    case .tooManyAttempts(let seconds):
      "too many wrong passcodes: nothing is tried now; try again in \(Self.duration(seconds))"
    case .wiped:
      "the vault was wiped: its keys are destroyed, and no passcode opens it; only a copy from before that has a recovery "
        + "key, or a company's escrow key, can be opened with that key: see coffer recover"
    case .maybeCopy:
      "nothing was destroyed: as far as the key store knows, the vault was changed last in another folder, and this is a "
        + "copy of it, a backup, or a vault that was moved here from a disk that is not there any more. All of them have "
        + "the same keys. To be rid of a copy, delete its folder; to destroy the keys of every copy: coffer wipe "
        + "--all-copies"
    case .copyOfPresentVault:
      "nothing was changed: this is a copy, and the vault itself lies in another folder on this device, which a new passcode "
        + "for the copy would lock out. Recover it there; or, to take this copy as the vault from now on: coffer recover "
        + "--accept-restored"
    case .foreignKeybag:
      "nothing was destroyed: the folder's coffer.json or keybag.json is not what this device made; it is damaged, or "
        + "somebody else's. Delete the folder; to destroy the keys that the key store has of a vault with its id, and so "
        + "those of every copy: coffer wipe --all-copies"
    case .nothingToWipe:
      "nothing was destroyed: the key store holds no key of this vault, and who has the one that does can open it and its "
        + "copies; check --key-store. Where the vault was wiped before or its key store is lost, delete the folder"
    case .outdatedKeybag:
      "the vault's keybag.json is from before its passcode was changed, as in an older backup, and no passcode opens it, "
        + "neither the former one nor the present one. If the vault itself is still there, copy its keybag.json to this "
        + "place: then the present passcode does. If it is not, the recovery key opens this copy, and makes it the vault "
        + "from now on: coffer recover --accept-restored"
    case .noRecoverySlot: "the vault has no recovery key"
    case .wrongRecoveryKey: "the recovery key is well written, but not this vault's, or was replaced by another"
    case .noEscrowSlot: "no company's key opens the vault"
    case .wrongEscrowKey: "the company's key is not the one that opens the vault"
    case .clearing(let fault): fault.description
    case .deviceSecretMissing:
      "the key store holds no secret for this vault, so it cannot be opened here; check --key-store"
    case .inUse(let holder?): "the vault is in use by process \(holder); try again when it has ended"
    case .inUse(nil): "the vault is in use by another process; try again when it has ended"
    case .damaged(let what): "the vault is damaged or was tampered with: \(what)"
    case .olderThanAnchor:
      "the vault is older than the newest state this device has seen, or a copy that went another way (a restored "
        + "backup is the usual cause); it can be read, but not changed; coffer accept-restored makes it the vault again"
    case .notFound: "no such file or folder in the vault"
    case .exists: "the name is taken"
    case .notADirectory: "not a folder"
    case .isADirectory: "it is a folder"
    case .directoryNotEmpty: "the folder is not empty"
    case .invalidName(let error): error.description
    case .moveIntoItself: "a folder cannot be moved into itself"
    case .tooLarge: "the file would be larger than a vault can hold (1 PiB)"
    case .invalidLink: "a symbolic link's target must have 1 to 4,095 bytes and no zero byte"
    case .wrongKind: "it is not the kind of file that this needs"
    case .tooManyLinks: "the file has too many names"
    case .folderLink: "a folder can have one name only"
    case .linkLoop: "the path leads through too many symbolic links"
    case .invalidTime: "a time's nanoseconds must be less than a second"
    case .nameCollisions: "the folder cannot take this name; choose another one"
    case .noSuchAttribute: "no such extended attribute"
    case .attributeExists: "there is an extended attribute of this name already"
    case .invalidAttributeName: "an extended attribute's name must have 1 to 255 bytes and no zero byte"
    case .attributeTooLarge: "an extended attribute's value can have 64 KiB at most"
    case .tooManyAttributes: "the file has too many extended attributes"
    case .badHandle: "the file is not open for this"
    case .rootFolder: "the vault's root folder cannot be moved, replaced or removed"
    case .settingTooLarge: "a sealed setting is too large"
    case .sourceChanged: "the source changed while it was read; nothing was stored"
    case .rncryptor(let error): error.description
    case .cancelled: "interrupted; nothing was left half done"
    case .full: "the disk is full"
    case .readOnlyDisk:
      "the vault lies on a disk that can only be read, and who opens it writes there; copy its folder to another disk, and open the copy"
    case .noMemory(let byteCount): "nothing was tried: \(CryptoError.noMemory(byteCount: byteCount))"
    case .unstored:
      "the disk of the vault, or of its key store, is full: what was changed last could not be stored, and would be missing. Make room "
        + "there, and try again"
    case .system(let error): error.description
    case .keyStore(let error): error.description
    case .database(let code): "the vault's index failed (SQLite result \(code))"
    case .needsReopening: "an earlier failure leaves the vault closed to changes; open it again"
    }
  }
}

extension VaultError {
  /// A delay for people: rounded up to minutes above two of them.
  public static func duration(_ seconds: UInt64) -> String {
    func text(_ count: UInt64, _ unit: String) -> String { "\(count) \(unit)\(count == 1 ? "" : "s")" }
    if seconds <= 120, seconds != 60, seconds != 120 { return text(seconds, "second") }
    return text((seconds + 59) / 60, "minute")
  }
}
