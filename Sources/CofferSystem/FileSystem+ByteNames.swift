internal import CCoffer

#if canImport(Glibc)
  internal import Glibc
#elseif canImport(Darwin)
  internal import Darwin
#endif

/// Calls on names as POSIX has them: bytes, in an open directory. A name that is not UTF-8 has no `String`.
extension FileSystem {
  /// Opens `name` in `directory`; see ``open(_:_:permissions:in:)``.
  public func open(
    _ name: [UInt8], _ mode: OpenMode, permissions: UInt16 = 0o600, in directory: OwnedDescriptor
  ) throws(SystemError) -> OwnedDescriptor {
    try faults?.willCall(.open)
    let flags = mode.rawValue | O_CLOEXEC
    let number = try retrying("open") {
      Self.withName(name) { coffer_open_at(directory.number, $0, flags, mode_t(permissions)) }
    }
    faults?.observe(.open(number, name: name, in: directory.number, mode: mode))
    return OwnedDescriptor(number: number, faults: faults)
  }

  /// Makes a directory; `false` when the name is taken already.
  @discardableResult
  public func makeDirectory(
    _ name: [UInt8], permissions: UInt16, in directory: OwnedDescriptor
  ) throws(SystemError) -> Bool {
    try faults?.willCall(.makeDirectory)
    if Self.withName(name, { mkdirat(directory.number, $0, mode_t(permissions)) }) == 0 {
      faults?.observe(.makeDirectory(name: name, in: directory.number))
      return true
    }
    if errno == EEXIST { return false }
    throw .last("mkdir")
  }

  /// Removes an empty directory.
  public func removeDirectory(_ name: [UInt8], in directory: OwnedDescriptor) throws(SystemError) {
    try faults?.willCall(.unlink)
    guard Self.withName(name, { unlinkat(directory.number, $0, AT_REMOVEDIR) }) == 0 else { throw .last("rmdir") }
    faults?.observe(.removeDirectory(name: name, in: directory.number))
  }

  /// Renames a file within `directory`, replacing what has the new name.
  public func rename(_ old: String, to new: [UInt8], in directory: OwnedDescriptor) throws(SystemError) {
    try faults?.willCall(.rename)
    guard Self.withName(new, { renameat(directory.number, old, directory.number, $0) }) == 0 else {
      throw .last("rename")
    }
    observeRename(old, new, directory, directory)
  }

  /// What a symbolic link points with; up to 4,095 bytes. Throws EINVAL where `name` is no link.
  public func readLink(_ name: [UInt8], in directory: OwnedDescriptor? = nil) throws(SystemError) -> [UInt8] {
    try faults?.willCall(.read)
    let limit = 4096
    var target = [UInt8](repeating: 0, count: limit)
    let count = target.withUnsafeMutableBytes { target in
      Self.withName(name) {
        CInt(readlinkat(directory?.number ?? AT_FDCWD, $0, target.bindMemory(to: CChar.self).baseAddress!, limit))
      }
    }
    guard count >= 0 else { throw .last("readlink") }
    guard count < limit else { throw SystemError(code: ENAMETOOLONG, call: "readlink") }
    return Array(target.prefix(Int(count)))
  }

  /// The absolute path of what is at `path`, without symbolic links.
  public func resolvedPath(of path: String) throws(SystemError) -> [UInt8] {
    try faults?.willCall(.read)
    guard let resolved = realpath(path, nil) else { throw .last("realpath") }
    defer { free(resolved) }
    return Array(UnsafeRawBufferPointer(start: resolved, count: strlen(resolved)))
  }

  /// Makes a symbolic link; `false` when the name is taken already.
  public func makeSymbolicLink(
    _ name: String, to target: [UInt8], in directory: OwnedDescriptor
  ) throws(SystemError) -> Bool {
    try faults?.willCall(.open)
    if Self.withName(target, { symlinkat($0, directory.number, name) }) == 0 { return true }
    if errno == EEXIST { return false }
    throw .last("symlink")
  }

  /// What `name` is, without following a symbolic link; nil when nothing is there.
  public func status(of name: [UInt8], in directory: OwnedDescriptor) throws(SystemError) -> FileStatus? {
    var value = stat()
    if Self.withName(name, { fstatat(directory.number, $0, &value, AT_SYMLINK_NOFOLLOW) }) == 0 {
      return FileStatus(value)
    }
    let error = SystemError.last("stat")
    if error.isAbsent { return nil }
    throw error
  }
}
