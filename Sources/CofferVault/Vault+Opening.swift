public import CofferCrypto
internal import CofferFiles
public import CofferKeys
public import CofferSystem

/// A vault's folder, held open.
struct VaultFolder {
  let files: FileSystem
  let path: String
  let descriptor: OwnedDescriptor

  init(files: FileSystem, path: String, descriptor: OwnedDescriptor) {
    self.files = files
    self.path = path
    self.descriptor = descriptor
  }

  /// Throws `noVault`, and `notAVault` for what is no folder.
  init(opening path: String, files: FileSystem) throws {
    guard try files.status(of: path) != nil else { throw VaultError.noVault }
    let descriptor = Result { () throws(SystemError) in try files.open(path, .directory) }
    if case .failure(let error) = descriptor, error.isAbsent { throw VaultError.notAVault }
    self.init(files: files, path: path, descriptor: try descriptor.get())
  }

  /// One writer at a time: the lock's file names its holder for the error of the next.
  func takeLock() throws -> OwnedDescriptor {
    let lock = try files.open(
      VaultFormat.lock, [.readWrite, .create, .noFollow], permissions: 0o600, in: descriptor)
    guard try lock.lockExclusively() else {
      let holder = try? Int32(String(decoding: lock.contents(limit: 32), as: UTF8.self))
      throw VaultError.inUse(holder: holder ?? nil)
    }
    // Only for the message to the next: a full disk must not keep anyone from reading.
    try? lock.truncate(to: 0)
    try? lock.writeAll(Array(String(ProcessHardening.processID).utf8))
    return lock
  }

  func contents(of name: String) throws -> [UInt8]? {
    guard let status = try files.status(of: name, in: descriptor) else { return nil }
    guard status.kind == .file, status.byteCount <= UInt64(VaultFormat.headerLimit) else {
      throw VaultError.damaged(what: name)
    }
    return try files.open(name, [.readOnly, .noFollow, .nonBlocking], in: descriptor).contents(
      limit: VaultFormat.headerLimit)
  }
}

/// How a vault is opened beside what it needs.
public struct VaultOptions: Sendable {
  /// Take a state that is older than the newest one this device has seen, or that went another way, as the vault from
  /// now on: for a backup that was put back. Without it such a vault can only be read.
  public var acceptsOlderState = false
  /// Runs the commits that nobody asks for.
  public var scheduler: any Scheduler = SystemScheduler()

  public init() {}
}

extension Vault {
  /// Makes a vault in an empty or new folder and opens it.
  ///
  /// - Parameters:
  ///   - derivation: the cost of deriving the passcode key.
  ///   - keyStore: where the device secret goes; it must not be inside the folder.
  ///   - keybag: what opens the vault beside the passcode.
  ///   - isCancelled: asked once the passcode's key is derived, and a last time before the folder becomes a vault.
  /// Throws `folderNotEmpty` or `cancelled`. Where it fails, what it made is taken away again.
  public static func create(
    at path: String, keyStore: any KeyStore, passcode: SecretBytes, derivation: PasscodeDerivation,
    keybag: KeybagOptions = KeybagOptions(), files: FileSystem = FileSystem(), time: any TimeSource = SystemTime(),
    options: VaultOptions = VaultOptions(), isCancelled: () -> Bool = { false }
  ) throws(VaultError) -> Vault {
    let id = VaultID()
    do {
      try passcode.requirePasscode()
      try options.scheduler.requireReady()
      let present = try files.status(of: path)
      if let present, present.kind != .directory, present.kind != .symbolicLink { throw VaultError.folderNotEmpty }
      let missing = try missingFolders(on: path, files)
      try files.makeDirectories(path)
      let folder = VaultFolder(files: files, path: path, descriptor: try files.open(path, .directory))
      try requireEmpty(folder)
      do {
        // From here on nobody else makes a vault here, and what is taken away after a failure is this call's own.
        let lock = try folder.takeLock()
        try requireEmpty(folder)
        removeLeftovers(in: folder, [VaultFormat.ballast])
        return try make(
          id, in: folder, keyStore: keyStore, passcode: passcode, derivation: derivation, keybagOptions: keybag,
          lock: lock, time: time, options: options, requireWanted: { if isCancelled() { throw VaultError.cancelled } })
      } catch let error as VaultError where error.isSomebodyElses {
        throw error
      } catch {
        try? keyStore.removeAll(of: id)
        removeLeftovers(in: folder, [VaultFormat.ballast, VaultFormat.keybag, VaultFormat.description])
        _ = try? files.unlink(VaultFormat.lock, in: folder.descriptor)
        for folder in missing { _ = try? files.removeDirectory(folder) }
        throw error
      }
    } catch {
      throw VaultError.wrapping(error)
    }
  }

  /// The folders on the way to `path` that are not there, the deepest first.
  private static func missingFolders(on path: String, _ files: FileSystem) throws -> [String] {
    var missing: [String] = []
    var place = path
    while !place.isEmpty, try files.status(of: place) == nil {
      missing.append(place)
      place = place.lastIndex(of: "/").map { String(place[..<$0]) } ?? ""
    }
    return missing
  }

  /// Throws `folderNotEmpty` where ``create(at:keyStore:passcode:derivation:keybag:files:time:options:isCancelled:)`` would, before
  /// it has made anything. Changes nothing.
  public static func requireVacant(at path: String, files: FileSystem = FileSystem()) throws(VaultError) {
    do {
      guard let present = try files.status(of: path) else { return }
      guard present.kind == .directory || present.kind == .symbolicLink else { throw VaultError.folderNotEmpty }
      let folder = VaultFolder(files: files, path: path, descriptor: try files.open(path, .directory))
      try requireEmpty(folder)
    } catch {
      throw VaultError.wrapping(error)
    }
  }

  /// What a creation makes before the keybag. A folder that holds only these was left by one that was interrupted, and
  /// nothing in it can be read by anybody: its keys were never stored.
  private static let unfinished = [
    VaultFormat.index, VaultFormat.indexLog, VaultFormat.index + "-journal", VaultFormat.objects,
  ]

  /// A keybag or an object may be all that is left of somebody's files, and is never taken for a leftover. Nor is an index beside a
  /// ballast or a journal, which are made when a vault is opened: its keys were stored. A ballast alone is nobody's files.
  private static func requireEmpty(_ folder: VaultFolder) throws {
    let names = try folder.files.names(in: folder.descriptor)
    let hasIndex = names.contains(Array(VaultFormat.index.utf8))
    let own = Set((unfinished + [VaultFormat.lock] + (hasIndex ? [] : [VaultFormat.ballast])).map { Array($0.utf8) })
    for name in names where !own.contains(name) && !FileSystem.isUnfinishedReplacement(name) {
      throw VaultError.folderNotEmpty
    }
    guard try folder.files.status(of: VaultFormat.objects, in: folder.descriptor) != nil else { return }
    let objects = try folder.files.open(VaultFormat.objects, [.directory, .noFollow], in: folder.descriptor)
    guard try folder.files.names(in: objects).isEmpty else { throw VaultError.folderNotEmpty }
  }

  private static func removeLeftovers(in folder: VaultFolder, _ made: [String] = []) {
    for name in unfinished + made where name != VaultFormat.objects {
      _ = try? folder.files.unlink(name, in: folder.descriptor)
    }
    _ = try? folder.files.removeDirectory(VaultFormat.objects, in: folder.descriptor)
    for name in (try? folder.files.names(in: folder.descriptor)) ?? [] where FileSystem.isUnfinishedReplacement(name) {
      _ = try? folder.files.unlink(String(decoding: name, as: UTF8.self), in: folder.descriptor)
    }
  }

  private static func make(
    _ id: VaultID, in folder: VaultFolder, keyStore: any KeyStore, passcode: SecretBytes,
    derivation: PasscodeDerivation, keybagOptions: KeybagOptions, lock: OwnedDescriptor, time: any TimeSource,
    options: VaultOptions, requireWanted: () throws -> Void
  ) throws -> Vault {
    let secret = SecretKey().secretBytes
    let rotation = SecretKey()
    let description = VaultDescription(id: id)
    let device = try DeviceKeys(secret: secret, vault: id)
    try keyStore.write(secret, as: .deviceSecret, of: id)
    try keyStore.write(RotationRecord([rotation]).encoded(), as: .rotation, of: id)
    try keyStore.write(AttemptRecord().secretBytes(key: device.attempts), as: .attempts, of: id)
    let master = SecretKey()
    var (keybag, keys) = try Keybag.make(derivation: derivation, master: master)
    try keybag.apply(keybagOptions, master: master, vault: id)
    try keybag.lock(
      with: .init(
        derivation: derivation, derived: try derivation.key(for: passcode), device: device, rotation: rotation,
        master: master),
      for: description)
    try requireWanted()
    let keybagBytes = try keybag.encoded()
    try folder.files.makeDirectory(VaultFormat.objects, in: folder.descriptor)
    let now = time.now()
    let rootFolder = Inode(
      number: .rootFolder, kind: .directory, protection: .complete, permissions: 0o700, owner: .process, modified: now,
      now: now, content: .directory(FolderContent(parent: .rootFolder)))
    let root = try Index.create(at: folder.path + "/" + VaultFormat.index, keys: keys, vault: id) { session in
      try session.store(rootFolder)
    }
    try folder.files.replaceDurably(VaultFormat.keybag, in: folder.descriptor, with: keybagBytes)
    let anchor = Anchor(
      branch: root.branch, generation: root.generation, commit: root.commit,
      keybagDigest: Digest.sha256(keybagBytes), isBound: false)
    try keyStore.write(anchor.secretBytes, as: .anchor, of: id)
    try FolderPlace(of: folder).store(in: keyStore, for: id)
    try requireWanted()
    // Last: a folder without it is not a vault, whatever else a crash left there.
    try folder.files.replaceDurably(VaultFormat.description, in: folder.descriptor, with: description.bytes)
    return try Vault(
      opening: folder, description: description, keybag: keybagBytes, keys: keys, keyStore: keyStore, lock: lock,
      time: time, options: options)
  }

  /// Opens a vault.
  ///
  /// Throws `noVault`, `notAVault`, `newerFormat`, `inUse`, `wiped`, `deviceSecretMissing`, `damaged`, `outdatedKeybag`,
  /// `tooManyAttempts` or `wrongPasscode`, in that order of asking.
  ///
  /// - Parameter passcode: called once it is known that there is a vault to open.
  public static func open(
    at path: String, keyStore: any KeyStore, passcode: () throws -> SecretBytes,
    files: FileSystem = FileSystem(), time: any TimeSource = SystemTime(), options: VaultOptions = VaultOptions()
  ) throws -> Vault {
    try openWithAccess(at: path, keyStore: keyStore, passcode: passcode, files: files, time: time, options: options)
      .vault
  }

  /// As above, with leave to change what else opens it.
  public static func openWithAccess(
    at path: String, keyStore: any KeyStore, passcode: () throws -> SecretBytes,
    files: FileSystem = FileSystem(), time: any TimeSource = SystemTime(), options: VaultOptions = VaultOptions()
  ) throws -> (vault: Vault, access: VaultAccess) {
    try openingErrors {
      let place = try VaultPlace(
        at: path, files: files, keyStore: keyStore, time: time, scheduler: options.scheduler)
      let opened = try place.locked.unlock(passcode: passcode)
      return (try place.vault(opened, options: options), VaultAccess(opened: opened))
    }
  }

  /// As above, for whoever has the key that the passcode gives.
  static func open(
    at path: String, keyStore: any KeyStore, files: FileSystem, time: any TimeSource, options: VaultOptions,
    deriving: (PasscodeDerivation) throws -> SecretKey
  ) throws -> Vault {
    try openingErrors {
      let place = try VaultPlace(
        at: path, files: files, keyStore: keyStore, time: time, scheduler: options.scheduler)
      let unused = SecretBytes(count: 1) { $0[0] = 0 }
      let opened = try place.locked.unlock(passcode: { unused }) { derivation, _ in
        try deriving(derivation)
      }
      return try place.vault(opened, options: options)
    }
  }

  /// Runs `body` and gives its failure this module's type, but for that of whoever asks for a passcode.
  static func openingErrors<Result>(_ body: () throws -> Result) throws -> Result {
    do {
      return try body()
    } catch let error as AskedPasscode.Failure {
      throw error.cause
    } catch {
      throw VaultError.wrapping(error)
    }
  }
}

extension VaultError {
  /// Another creation is at work in the folder, or has just finished: nothing there is ours to take away.
  fileprivate var isSomebodyElses: Bool {
    switch self {
    case .inUse, .folderNotEmpty: true
    default: false
    }
  }
}
