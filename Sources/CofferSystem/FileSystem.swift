internal import CCoffer

#if canImport(Glibc)
  internal import Glibc
#elseif canImport(Darwin)
  internal import Darwin
#endif

/// A system call that a test can make fail.
public enum SystemCall: String, Hashable, Sendable, CaseIterable {
  case open, read, write, sync, rename, unlink, makeDirectory, truncate, punchHole
}

/// Decides, call by call, whether a system call fails instead of being made. Only tests have one.
public protocol FaultPlan: Sendable {
  /// Throws the error that the call shall report; the call is then not made.
  func willCall(_ call: SystemCall) throws(SystemError)
  /// Learns what was stored: after each change that was made, and before each sync. Does nothing unless implemented.
  func observe(_ operation: StorageOperation)
}

/// The only way to files: opens descriptors and changes names, each call through the fault seam.
public struct FileSystem: Sendable {
  let faults: (any FaultPlan)?

  public init() { faults = nil }
  public init(faults: any FaultPlan) { self.faults = faults }

  /// How a file is opened.
  public struct OpenMode: OptionSet, Sendable {
    public let rawValue: CInt
    public init(rawValue: CInt) { self.rawValue = rawValue }
    public static let readOnly = OpenMode(rawValue: O_RDONLY)
    public static let writeOnly = OpenMode(rawValue: O_WRONLY)
    public static let readWrite = OpenMode(rawValue: O_RDWR)
    /// Creates the file and fails if the name is taken, by a symbolic link too.
    public static let createNew = OpenMode(rawValue: O_CREAT | O_EXCL)
    /// Creates the file if it is not there.
    public static let create = OpenMode(rawValue: O_CREAT)
    public static let truncate = OpenMode(rawValue: O_TRUNC)
    public static let directory = OpenMode(rawValue: O_RDONLY | O_DIRECTORY)
    /// A folder to start from, which need not be readable; its names cannot be listed through it.
    #if os(Linux)
      public static let passage = OpenMode(rawValue: coffer_path_only() | O_DIRECTORY)
    #else
      public static let passage = directory
    #endif
    /// Fails where the last component is a symbolic link.
    public static let noFollow = OpenMode(rawValue: O_NOFOLLOW)
    /// Does not wait for the other end of a fifo.
    public static let nonBlocking = OpenMode(rawValue: O_NONBLOCK)
  }

  /// Opens `path`; relative to `directory` where one is given.
  ///
  /// The descriptor is closed when its last reference goes, and never inherited by a child process.
  public func open(
    _ path: String, _ mode: OpenMode, permissions: UInt16 = 0o600, in directory: OwnedDescriptor? = nil
  ) throws(SystemError) -> OwnedDescriptor {
    try faults?.willCall(.open)
    let flags = mode.rawValue | O_CLOEXEC
    let number = try retrying("open") {
      if let directory {
        coffer_open_at(directory.number, path, flags, mode_t(permissions))
      } else {
        coffer_open(path, flags, mode_t(permissions))
      }
    }
    faults?.observe(.open(number, name: Array(path.utf8), in: directory?.number, mode: mode))
    return OwnedDescriptor(number: number, faults: faults)
  }

  /// Makes a directory; `false` when the name is taken already.
  @discardableResult
  public func makeDirectory(
    _ path: String, permissions: UInt16 = 0o700, in directory: OwnedDescriptor? = nil
  ) throws(SystemError) -> Bool {
    try faults?.willCall(.makeDirectory)
    if mkdirat(directory?.number ?? AT_FDCWD, path, mode_t(permissions)) == 0 {
      faults?.observe(.makeDirectory(name: Array(path.utf8), in: directory?.number))
      return true
    }
    if errno == EEXIST { return false }
    throw .last("mkdir")
  }

  /// Renames a file, replacing what has the new name.
  public func rename(_ old: String, to new: String, in directory: OwnedDescriptor? = nil) throws(SystemError) {
    try faults?.willCall(.rename)
    let folder = directory?.number ?? AT_FDCWD
    guard renameat(folder, old, folder, new) == 0 else { throw .last("rename") }
    observeRename(old, Array(new.utf8), directory, directory)
  }

  func observeRename(
    _ old: String, _ new: [UInt8], _ oldDirectory: OwnedDescriptor?, _ newDirectory: OwnedDescriptor?
  ) {
    faults?.observe(.rename(old: Array(old.utf8), in: oldDirectory?.number, new: new, to: newDirectory?.number))
  }

  /// Renames a file; `false` when the new name is taken.
  public func renameWithoutReplacing(
    _ old: String, to new: String, in directory: OwnedDescriptor? = nil
  ) throws(SystemError) -> Bool {
    try faults?.willCall(.rename)
    let folder = directory?.number ?? AT_FDCWD
    if coffer_rename_exclusive(folder, old, folder, new) == 0 {
      observeRename(old, Array(new.utf8), directory, directory)
      return true
    }
    if errno == EEXIST { return false }
    throw .last("rename")
  }

  /// Removes a file's name; `false` when it was not there.
  @discardableResult
  public func unlink(_ path: String, in directory: OwnedDescriptor? = nil) throws(SystemError) -> Bool {
    try faults?.willCall(.unlink)
    if unlinkat(directory?.number ?? AT_FDCWD, path, 0) == 0 {
      faults?.observe(.unlink(name: Array(path.utf8), in: directory?.number))
      return true
    }
    if errno == ENOENT { return false }
    throw .last("unlink")
  }

  /// Removes an empty directory; `false` when it was not there.
  @discardableResult
  public func removeDirectory(_ path: String, in directory: OwnedDescriptor? = nil) throws(SystemError) -> Bool {
    try faults?.willCall(.unlink)
    if unlinkat(directory?.number ?? AT_FDCWD, path, AT_REMOVEDIR) == 0 {
      faults?.observe(.removeDirectory(name: Array(path.utf8), in: directory?.number))
      return true
    }
    if errno == ENOENT { return false }
    throw .last("rmdir")
  }

  /// What the file at `path` is, without following a symbolic link at its end; nil when nothing is there.
  public func status(of path: String, in directory: OwnedDescriptor? = nil) throws(SystemError) -> FileStatus? {
    var value = stat()
    if fstatat(directory?.number ?? AT_FDCWD, path, &value, AT_SYMLINK_NOFOLLOW) == 0 { return FileStatus(value) }
    let error = SystemError.last("stat")
    if error.isAbsent { return nil }
    throw error
  }

  /// The names in a directory, without `.` and `..`, as bytes and in no particular order.
  public func names(in directory: OwnedDescriptor) throws(SystemError) -> [[UInt8]] {
    try faults?.willCall(.read)
    // A second descriptor: closedir closes the one it is given.
    let own = try retrying("open") { coffer_open_at(directory.number, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0) }
    guard let stream = fdopendir(own) else {
      let error = SystemError.last("opendir")
      close(own)
      throw error
    }
    defer { closedir(stream) }
    var result: [[UInt8]] = []
    while true {
      errno = 0
      guard let entry = readdir(stream) else {
        guard errno == 0 else { throw .last("readdir") }
        return result
      }
      let name = withUnsafePointer(to: &entry.pointee.d_name) { pointer in
        pointer.withMemoryRebound(to: UInt8.self, capacity: 256) { bytes in
          Array(
            UnsafeBufferPointer(
              start: bytes, count: strlen(UnsafeRawPointer(bytes).assumingMemoryBound(to: CChar.self))))
        }
      }
      if name != [46], name != [46, 46] { result.append(name) }
    }
  }

  /// Replaces the file `name` in `directory` so that a crash leaves the old bytes or the new: temporary name, sync,
  /// rename, sync of the directory.
  public func replaceDurably(
    _ name: String, in directory: OwnedDescriptor, permissions: UInt16 = 0o600, with bytes: SecretBytes
  ) throws(SystemError) {
    try replaceDurably(name, in: directory, permissions: permissions) { (file) throws(SystemError) in
      try file.writeAll(bytes)
    }
  }

  /// As above, for bytes that are no secret.
  public func replaceDurably(
    _ name: String, in directory: OwnedDescriptor, permissions: UInt16 = 0o600, with bytes: [UInt8]
  ) throws(SystemError) {
    try replaceDurably(name, in: directory, permissions: permissions) { (file) throws(SystemError) in
      try file.writeAll(bytes)
    }
  }

  /// Whether a name is that of a temporary file of ``replaceDurably(_:in:permissions:with:)``, which a crash can leave.
  public static func isUnfinishedReplacement(_ name: [UInt8]) -> Bool {
    let digits = name.dropFirst().dropLast(4)
    return name.first == UInt8(ascii: ".") && name.suffix(4).elementsEqual(".new".utf8) && digits.count == 16
      && digits.allSatisfy { (48...57).contains($0) || (97...102).contains($0) }
  }

  private func replaceDurably(
    _ name: String, in directory: OwnedDescriptor, permissions: UInt16,
    write: (OwnedDescriptor) throws(SystemError) -> Void
  ) throws(SystemError) {
    let temporary = ".\(Randomness.bytes(8).hexadecimal).new"
    do {
      let file = try open(temporary, [.writeOnly, .createNew], permissions: permissions, in: directory)
      try write(file)
      try file.sync()
      try rename(temporary, to: name, in: directory)
    } catch {
      _ = try? unlink(temporary, in: directory)
      throw error
    }
    try directory.sync()
  }

  /// Makes `path` and the directories above it, each 0700, and syncs the parent of each that is new.
  public func makeDirectories(_ path: String) throws(SystemError) {
    if let status = try status(of: path) {
      // A symbolic link is followed here: a person may keep state elsewhere.
      guard status.kind == .directory || status.kind == .symbolicLink else {
        throw SystemError(code: ENOTDIR, call: "mkdir")
      }
      return
    }
    let parent = path.split(separator: "/", omittingEmptySubsequences: true).dropLast().joined(separator: "/")
    let parentPath = path.hasPrefix("/") ? "/" + parent : (parent.isEmpty ? "." : parent)
    if parentPath != path { try makeDirectories(parentPath) }
    try makeDirectory(path)
    try open(parentPath, .directory).sync()
  }
}

/// Makes a call again while a signal interrupts it.
func retrying(_ call: String, _ body: () -> CInt) throws(SystemError) -> CInt {
  while true {
    let result = body()
    if result >= 0 { return result }
    if errno != EINTR { throw .last(call) }
  }
}
