internal import CofferSystem
internal import Synchronization

/// The files under `objects/` that hold the blocks of larger files.
final class ObjectStore: Sendable {
  let files: FileSystem
  let root: OwnedDescriptor
  private let rowKeys: RowKeys
  private let unsynced = Mutex(Unsynced())
  /// Whether also those descriptors are taken that are kept for others: the vault is being closed.
  let mayUseReserve = Atomic(false)

  private struct Unsynced {
    /// Folders with new or removed objects, and whether there are new ones.
    var folders: [String: Bool] = [:]
    /// The objects' folder has new folders.
    var isRoot = false
    /// Threads that are making one: it may be there, and others may use it, before they say so.
    var makers = 0
    /// A sync has failed: the disk may have lost names, and says so only once.
    var isBroken = false

    mutating func note(_ folder: String, isNew: Bool) {
      folders[folder, default: false] = isNew || folders[folder] == true
    }
  }

  init(files: FileSystem, vaultFolder: OwnedDescriptor, rowKeys: RowKeys) throws {
    self.files = files
    self.rowKeys = rowKeys
    do {
      root = try files.open(VaultFormat.objects, [.directory, .noFollow], in: vaultFolder)
    } catch  where error.isAbsent {
      throw VaultError.damaged(what: "the folder of objects is missing")
    }
  }

  func objectPlace(_ number: UInt64) -> (folder: String, name: String) { rowKeys.objectPlace(number) }

  /// Makes the empty object `number`. A file that a crash left under its name is replaced.
  func create(_ number: UInt64) throws -> OwnedDescriptor {
    let place = rowKeys.objectPlace(number)
    let folder = try madeFolder(place.folder)
    let object = try created(place.name, in: folder)
    // Behind it: a commit that comes before may sync the folder before the name is there, and does not refer to it.
    unsynced.withLock { $0.note(place.folder, isNew: true) }
    return object
  }

  private func created(_ name: String, in folder: OwnedDescriptor) throws -> OwnedDescriptor {
    do {
      return try files.open(name, [.readWrite, .createNew, .noFollow], in: folder)
    } catch  where error.isTaken {
      try files.unlink(name, in: folder)
      return try files.open(name, [.readWrite, .createNew, .noFollow], in: folder)
    }
  }

  /// The folder, which is made where it is missing.
  private func madeFolder(_ name: String) throws -> OwnedDescriptor {
    if let folder = try folderIfPresent(name) { return folder }
    unsynced.withLock { $0.makers += 1 }
    defer {
      unsynced.withLock { unsynced in
        unsynced.makers -= 1
        unsynced.isRoot = true
      }
    }
    try files.makeDirectory(name, in: root)
    return try folder(name)
  }

  /// Throws EMFILE where an object could not be made or opened now.
  func requireDescriptor() throws {
    if !mayUseReserve.load(ordering: .relaxed) { try root.requireAnotherOutsideReserve() }
  }

  func open(_ number: UInt64, writing: Bool) throws -> OwnedDescriptor {
    let place = rowKeys.objectPlace(number)
    do {
      // Not waiting: a fifo in its place would hold the reader up.
      let object = try files.open(
        place.name, [writing ? .readWrite : .readOnly, .noFollow, .nonBlocking], in: folder(place.folder)
      )
      if !mayUseReserve.load(ordering: .relaxed) { try object.requireOutsideReserve() }
      guard try object.status().kind == .file else { throw VaultError.damaged(what: "an object is no file") }
      return object
    } catch let error as SystemError where error.isAbsent {
      throw VaultError.damaged(what: "an object is missing")
    }
  }

  /// What an object takes on the disk, in bytes; 0 where it is not there.
  func allocatedByteCount(of number: UInt64) -> UInt64 {
    let place = rowKeys.objectPlace(number)
    guard let folder = try? folder(place.folder) else { return 0 }
    return (try? files.status(of: place.name, in: folder))?.allocatedByteCount ?? 0
  }

  func remove(_ number: UInt64) throws {
    if let error = remove([number]).first?.value { throw error }
  }

  /// Removes those of the objects that are there, and goes on where one cannot be: returns why.
  ///
  /// - Parameter emptied: of them, those that nobody reads any more, and whose room somebody needs at once: it would stay taken for as long as
  ///   some thread that has just closed the file has its descriptor.
  func remove(_ numbers: [UInt64], emptying emptied: Set<UInt64> = []) -> [UInt64: any Error] {
    var failures: [UInt64: any Error] = [:]
    let places = numbers.map { (number: $0, place: rowKeys.objectPlace($0)) }
    // Many are looked for, and few are there, when a vault is opened.
    let present = numbers.count > 1 ? try? Set(files.names(in: root)) : nil
    for (folderName, objects) in Dictionary(grouping: places, by: \.place.folder) {
      if let present, !present.contains(Array(folderName.utf8)) { continue }
      do {
        guard let folder = try folderIfPresent(folderName) else { continue }
        for object in objects {
          // Synced before the commit that forgets the removal: a name that came back after it would stay for ever.
          do {
            if emptied.contains(object.number) { try? empty(object.place.name, in: folder) }
            let isRemoved = try files.unlink(object.place.name, in: folder)
            if isRemoved { unsynced.withLock { $0.note(folderName, isNew: false) } }
          } catch {
            failures[object.number] = error
          }
        }
      } catch {
        for object in objects { failures[object.number] = error }
      }
    }
    return failures
  }

  /// Where it has other names, somebody else's, they keep its content.
  private func empty(_ name: String, in folder: OwnedDescriptor) throws {
    let object = try files.open(name, [.readWrite, .noFollow, .nonBlocking], in: folder)
    let status = try object.status()
    if status.kind == .file, status.linkCount == 1 { try object.truncate(to: 0) }
  }

  /// No part of the way may be a link: ciphertext is neither written nor removed elsewhere.
  private func folder(_ name: String) throws -> OwnedDescriptor {
    try files.open(name, [.directory, .noFollow], in: root)
  }

  private func folderIfPresent(_ name: String) throws -> OwnedDescriptor? {
    do { return try folder(name) } catch let error as SystemError where error.isMissing { return nil }
  }

  /// Makes the names of new and removed objects durable. Comes after their bytes and before the commit that refers to them.
  ///
  /// Throws `needsReopening` once a sync has failed.
  func syncFolders() throws {
    // Taken out first: a name that is made in one of them meanwhile puts it back.
    var (folders, needsRoot) = try unsynced.withLock { unsynced in
      if unsynced.isBroken { throw VaultError.needsReopening }
      defer {
        unsynced.folders = [:]
        unsynced.isRoot = false
      }
      return (unsynced.folders, unsynced.isRoot || unsynced.makers > 0)
    }
    do {
      for (name, hasNew) in folders {
        guard let folder = try folderIfPresent(name) else {
          if hasNew { throw VaultError.damaged(what: "a folder of objects was removed while the vault was open") }
          // With all that was removed in it.
          needsRoot = true
          continue
        }
        try sync(folder)
      }
      if needsRoot { try sync(root) }
    } catch {
      unsynced.withLock { unsynced in
        for (name, hasNew) in folders { unsynced.note(name, isNew: hasNew) }
        unsynced.isRoot = unsynced.isRoot || needsRoot
      }
      throw error
    }
  }

  private func sync(_ folder: OwnedDescriptor) throws {
    do {
      try folder.sync()
    } catch {
      if !error.isFull { unsynced.withLock { $0.isBroken = true } }
      throw error
    }
  }
}
