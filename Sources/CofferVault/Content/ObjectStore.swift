internal import CofferSystem
internal import Synchronization

/// The files under `objects/` that hold the blocks of larger files.
final class ObjectStore: Sendable {
  private let files: FileSystem
  private let root: OwnedDescriptor
  private let rowKeys: RowKeys
  /// Folders whose new names are not durable yet; the empty name is the objects' folder itself.
  private let unsynced = Mutex<Set<String>>([])

  init(files: FileSystem, vaultFolder: OwnedDescriptor, rowKeys: RowKeys) throws {
    self.files = files
    self.rowKeys = rowKeys
    do {
      root = try files.open(VaultFormat.objects, [.directory, .noFollow], in: vaultFolder)
    } catch  where error.isAbsent {
      throw VaultError.damaged(what: "the folder of objects is missing")
    }
  }

  /// Makes the empty object `number`. A file that a crash left under its name is replaced.
  func create(_ number: UInt64) throws -> OwnedDescriptor {
    let (folder, path) = rowKeys.objectPath(number)
    if try files.makeDirectory(folder, in: root) { _ = unsynced.withLock { $0.insert("") } }
    try files.unlink(path, in: root)
    let object = try files.open(path, [.readWrite, .createNew, .noFollow], in: root)
    _ = unsynced.withLock { $0.insert(folder) }
    return object
  }

  func open(_ number: UInt64) throws -> OwnedDescriptor {
    do {
      return try files.open(rowKeys.objectPath(number).path, [.readOnly, .noFollow], in: root)
    } catch  where error.isAbsent {
      throw VaultError.damaged(what: "an object is missing")
    }
  }

  func remove(_ number: UInt64) throws {
    try files.unlink(rowKeys.objectPath(number).path, in: root)
  }

  /// Makes the names of new objects durable. Comes after their bytes and before the commit that refers to them.
  func syncFolders() throws {
    let folders = unsynced.withLock { $0 }
    for folder in folders where !folder.isEmpty { try files.open(folder, .directory, in: root).sync() }
    if folders.contains("") { try root.sync() }
    // Only what was synced is forgotten: a failure, or an object made meanwhile, leaves its folder here.
    unsynced.withLock { $0.subtract(folders) }
  }
}
