internal import CCoffer

#if canImport(Glibc)
  internal import Glibc
#elseif canImport(Darwin)
  internal import Darwin
#endif

/// Names that others chose: bytes, as POSIX has them, which need not be text.
extension FileSystem {
  /// Renames a file; `false` when the new name is taken.
  public func renameWithoutReplacing(
    _ old: String, to new: [UInt8], in directory: OwnedDescriptor
  ) throws(SystemError) -> Bool {
    try faults?.willCall(.rename)
    let result = Self.withName(new) { coffer_rename_exclusive(directory.number, old, directory.number, $0) }
    if result == 0 {
      observeRename(old, new, directory, directory)
      return true
    }
    if errno == EEXIST { return false }
    throw .last("rename")
  }

  /// Removes `name` in `directory`, and what is in it if it is a directory. Symbolic links are removed, never followed.
  public func removeTree(_ name: String, in directory: OwnedDescriptor) throws(SystemError) {
    try removeTree(Array(name.utf8), in: directory)
  }

  /// Removes whatever has the name, an empty folder or a full one, too; `false` where nothing has it.
  @discardableResult
  public func removeAny(_ name: String, in directory: OwnedDescriptor) throws(SystemError) -> Bool {
    switch try status(of: name, in: directory)?.kind {
    case nil: return false
    case .directory:
      try removeTree(name, in: directory)
      return true
    default: return try unlink(name, in: directory)
    }
  }

  private func removeTree(_ name: [UInt8], in directory: OwnedDescriptor) throws(SystemError) {
    let flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC
    let number = Self.withName(name) { coffer_open_at(directory.number, $0, flags, 0) }
    if number >= 0 {
      let folder = OwnedDescriptor(number: number, faults: faults)
      faults?.observe(.open(number, name: name, in: directory.number, mode: [.directory, .noFollow]))
      // Whoever made it may have taken away the right to change it.
      try folder.setPermissions(0o700)
      for name in try names(in: folder) { try removeTree(name, in: folder) }
    } else if errno != ENOTDIR && errno != ELOOP {
      throw .last("open")
    }
    try faults?.willCall(.unlink)
    let isFolder = number >= 0
    guard Self.withName(name, { unlinkat(directory.number, $0, isFolder ? AT_REMOVEDIR : 0) }) == 0 else {
      throw .last("unlink")
    }
    faults?.observe(
      isFolder ? .removeDirectory(name: name, in: directory.number) : .unlink(name: name, in: directory.number))
  }

  static func withName(_ name: [UInt8], _ body: (UnsafePointer<CChar>) -> CInt) -> CInt {
    (name + [0]).withUnsafeBufferPointer { bytes in
      bytes.withMemoryRebound(to: CChar.self) { body($0.baseAddress!) }
    }
  }
}
