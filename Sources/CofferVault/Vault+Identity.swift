public import CofferKeys
public import CofferSystem

extension Vault {
  /// The id that a folder says it is the vault of, in the open and before any key; nil where it is no vault that this
  /// version can open. Who opens it learns whether it is true.
  public static func statedID(at path: String, files: FileSystem = FileSystem()) -> VaultID? {
    guard let descriptor = try? files.open(path, .directory) else { return nil }
    let folder = VaultFolder(files: files, path: path, descriptor: descriptor)
    guard let bytes = try? folder.contents(of: VaultFormat.description) else { return nil }
    return try? VaultDescription(parsing: bytes).id
  }

  /// Throws `inUse` where a process has the vault open. Nothing is changed.
  public static func requireUnused(at path: String, files: FileSystem = FileSystem()) throws(VaultError) {
    guard let folder = try? files.open(path, .directory),
      let lock = try? files.open(VaultFormat.lock, [.readOnly, .noFollow], in: folder),
      (try? lock.lockForReading()) == false
    else { return }
    throw .inUse(holder: (try? lock.contents(limit: 32)).flatMap { Int32(String(decoding: $0, as: UTF8.self)) })
  }
}

extension Vault {
  /// The disk has little room left, and what was removed may be about to give some back: see ``settleRemovals(until:)``.
  public var mayGainRoom: Bool { room.isShort && files.isSettling }

  /// The room on the file system that the vault lies on. Where little is left, what was removed gives its room back first.
  public func space() throws(VaultError) -> FileSystemSpace {
    try VaultError.catching {
      room.look()
      if room.isShort, !isReadOnly {
        removeLetGo()
        // What fails is told to whoever syncs; the room is as it is. Where the last commit found no room, not for each who asks.
        if room.mayCommit, index.read(\.uncommitted).operationCount > 0 { try? commitJoined() }
        roomGivenBack.wait()
      }
      return try folder.descriptor.space()
    }
  }
}
