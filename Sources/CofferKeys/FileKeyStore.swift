public import CofferSystem

/// A key store in a folder that only its owner may enter: `FOLDER/<vault id>/<item>`, each file 0600.
///
/// It has no hardware behind it: who can read the owner's files can read the secrets. What it gives is that the vault's
/// folder alone (a backup, a stolen disk image, a synchronised copy) opens with no passcode.
public struct FileKeyStore: KeyStore {
  private let path: String
  private let files: FileSystem
  /// No item is ever larger.
  private static let limit = 64 << 10
  private static let lock = "lock"

  public init(path: String, files: FileSystem = FileSystem()) {
    self.path = path
    self.files = files
  }

  /// Throws `exposed` where the store is there and others can enter it.
  public func requirePrivate() throws(KeyStoreError) {
    do {
      guard try files.status(of: path) != nil else { return }
      try Self.requirePrivate(files.open(path, .directory).status())
    } catch {
      throw Self.wrap(error)
    }
  }

  public func read(_ item: KeyStoreItem, of vault: VaultID) throws(KeyStoreError) -> SecretBytes? {
    do {
      guard try files.status(of: path) != nil, let folder = try folder(of: vault, create: false) else { return nil }
      guard let named = try files.status(of: item.rawValue, in: folder) else { return nil }
      guard named.kind == .file else { throw KeyStoreError.damaged(item) }
      let file = try files.open(item.rawValue, [.readOnly, .noFollow, .nonBlocking], in: folder)
      let status = try file.status()
      try Self.requirePrivate(status)
      guard status.kind == .file, status.byteCount <= Self.limit else { throw KeyStoreError.damaged(item) }
      guard let value = try contents(of: file, status) else { throw KeyStoreError.damaged(item) }
      // What was destroyed and could not be removed is no key that anything may be made with.
      if item.isSecret, isOverwritten(value) { return nil }
      return value
    } catch {
      throw Self.wrap(error)
    }
  }

  public func write(_ value: SecretBytes, as item: KeyStoreItem, of vault: VaultID) throws(KeyStoreError) {
    do {
      guard let folder = try folder(of: vault, create: true) else { throw KeyStoreError.exposed }
      // Replacing a file leaves the old one's bytes on the disk.
      let old = item.isSecret ? try? files.open(item.rawValue, [.writeOnly, .noFollow, .nonBlocking], in: folder) : nil
      try replace(item, with: value, in: folder)
      if let old { try? files.overwriteContents(of: old, limit: Self.limit) }
    } catch {
      throw Self.wrap(error)
    }
  }

  public func removeAll(of vault: VaultID, keeping kept: Set<KeyStoreItem>) throws(KeyStoreError) {
    do {
      guard try files.status(of: path) != nil, let folder = try folder(of: vault, create: false) else { return }
      let items = KeyStoreItem.allCases.filter { !kept.contains($0) }
      // Whatever keeps one secret must not keep another.
      var failure: SystemError?
      func destroy(_ name: String) {
        do { try files.destroy(name, in: folder, limit: Self.limit) } catch {
          // Whoever has the vault open may just have given it another name, or taken it away.
          if !error.isMissing { failure = failure ?? error }
        }
      }
      for item in items where item.isSecret { destroy(item.rawValue) }
      do { try unfinishedReplacements(in: folder).forEach(destroy) } catch { failure = failure ?? error }
      if let failure { throw failure }
      for item in items { try files.removeAny(item.rawValue, in: folder) }
      // What stays is still used under its lock.
      if kept.isEmpty { try files.unlink(Self.lock, in: folder) }
      try folder.sync()
      guard kept.isEmpty else { return }
      let root = try files.open(path, .directory)
      // What somebody else put there stays, and the folder with it.
      _ = try? files.removeDirectory(vault.description, in: root)
      try root.sync()
    } catch {
      throw Self.wrap(error)
    }
  }

  public func holdsSecrets(of vault: VaultID) throws(KeyStoreError) -> Bool {
    do {
      guard try files.status(of: path) != nil, let folder = try folder(of: vault, create: false) else { return false }
      let items = KeyStoreItem.allCases.filter(\.isSecret).map(\.rawValue)
      return try (items + unfinishedReplacements(in: folder)).contains { holdsSecret($0, in: folder) }
    } catch {
      throw Self.wrap(error)
    }
  }

  private func holdsSecret(_ name: String, in folder: OwnedDescriptor) -> Bool {
    do {
      let file = try files.open(name, [.readOnly, .noFollow, .nonBlocking], in: folder)
      let status = try file.status()
      guard status.kind == .file, status.byteCount <= Self.limit else { return true }
      if status.byteCount == 0 { return false }
      return try contents(of: file, status).map { !isOverwritten($0) } ?? true
    } catch {
      return (error as? SystemError)?.isAbsent != true
    }
  }

  /// What a write that was cut may have left, under their temporary names.
  private func unfinishedReplacements(in folder: OwnedDescriptor) throws(SystemError) -> [String] {
    try files.names(in: folder).filter(FileSystem.isUnfinishedReplacement).map { String(decoding: $0, as: UTF8.self) }
  }

  /// As long as it was when it was looked at, and found no longer than an item is; nil where it has become shorter.
  private func contents(of file: OwnedDescriptor, _ status: FileStatus) throws -> SecretBytes? {
    var count = 0
    let value = try SecretBytes(count: Int(status.byteCount)) { count = try file.readFully(into: $0) }
    return count == value.count ? value : nil
  }

  /// Nothing is left but zeros, as of what was destroyed.
  private func isOverwritten(_ value: SecretBytes) -> Bool {
    value.withUnsafeBytes { !$0.isEmpty && !$0.contains { $0 != 0 } }
  }

  public func withLock<Result>(of vault: VaultID, _ body: () throws -> Result) throws -> Result {
    let lock: OwnedDescriptor
    do {
      guard try files.status(of: path) != nil, let folder = try folder(of: vault, create: false) else {
        throw KeyStoreError.nothingKept
      }
      lock = try acquire(in: folder)
    } catch {
      throw Self.wrap(error)
    }
    // A descriptor of its own each time: the lock holds between threads as it does between processes.
    defer { lock.unlock() }
    return try body()
  }

  private func acquire(in folder: OwnedDescriptor) throws -> OwnedDescriptor {
    while true {
      let lock = try files.open(Self.lock, [.readWrite, .create, .noFollow, .nonBlocking], in: folder)
      try lock.waitForExclusiveLock()
      // Whoever removed everything meanwhile removed this too: it locks nothing that others see.
      guard let named = try files.status(of: Self.lock, in: folder) else { throw KeyStoreError.nothingKept }
      if try lock.status().inode == named.inode { return lock }
      lock.unlock()
    }
  }

  private func replace(_ item: KeyStoreItem, with value: SecretBytes, in folder: OwnedDescriptor) throws {
    let replaced = Result { () throws(SystemError) in
      try files.replaceDurably(item.rawValue, in: folder, with: value)
    }
    // A full disk must not keep anyone from reading. The record is shorter than a sector, and one that was torn all the
    // same is not taken for whole.
    if case .failure(let error) = replaced, error.isFull, item == .attempts,
      try overwrite(item, with: value, in: folder)
    {
      return
    }
    // Nor must one keep anybody from knowing of a wipe that it has begun.
    if case .failure = replaced, item == .wiped, (try? turnAttempts(into: item, value, in: folder)) == true { return }
    try replaced.get()
  }

  /// Makes an item of the record of attempts, which takes no room: for a wipe, with which that goes anyway. `false` where there is
  /// none. Where this is cut the item makes no sense, and is there.
  private func turnAttempts(
    into item: KeyStoreItem, _ value: SecretBytes, in folder: OwnedDescriptor
  ) throws -> Bool {
    let attempts = KeyStoreItem.attempts.rawValue
    guard try files.status(of: attempts, in: folder)?.kind == .file else { return false }
    let file = try files.open(attempts, [.writeOnly, .noFollow, .nonBlocking], in: folder)
    try files.rename(attempts, to: item.rawValue, in: folder)
    try folder.sync()
    try file.writeAll(value)
    try file.truncate(to: UInt64(value.count))
    try file.sync()
    return true
  }

  /// Writes over an item of the same length; `false` where it has another.
  private func overwrite(_ item: KeyStoreItem, with value: SecretBytes, in folder: OwnedDescriptor) throws -> Bool {
    let file = try files.open(item.rawValue, [.writeOnly, .noFollow, .nonBlocking], in: folder)
    guard try file.status().byteCount == UInt64(value.count) else { return false }
    try file.writeAll(value)
    try file.sync()
    return true
  }

  /// The vault's folder, checked to be closed to others.
  private func folder(of vault: VaultID, create: Bool) throws -> OwnedDescriptor? {
    if create { try files.makeDirectories(path) }
    let root = try files.open(path, .directory)
    try Self.requirePrivate(root.status())
    if create {
      if try files.makeDirectory(vault.description, in: root) { try root.sync() }
    } else if try files.status(of: vault.description, in: root) == nil {
      return nil
    }
    let folder = try files.open(vault.description, [.directory, .noFollow], in: root)
    try Self.requirePrivate(folder.status())
    return folder
  }

  private static func requirePrivate(_ status: FileStatus) throws(KeyStoreError) {
    guard status.permissions & 0o077 == 0, status.owner == ProcessHardening.userID else { throw .exposed }
  }

  private static func wrap(_ error: any Error) -> KeyStoreError {
    switch error {
    case let error as KeyStoreError: error
    case let error as SystemError: .system(error)
    default: .system(SystemError(code: 5, call: "key store"))
    }
  }
}
