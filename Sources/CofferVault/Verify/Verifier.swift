internal import CofferFiles
internal import CofferSystem

/// Goes through a vault: every bucket of the index, every name from the root folder down, every map page, and where it is
/// asked for every block of content.
///
/// Each step is taken under the index's lock and gives it back, so that a vault in use stays usable; what changes
/// meanwhile may be counted in its old state or its new one. What looks damaged and has changed since it was begun is looked at again, a
/// file at last while nobody may write to it. A folder whose names change each time that they are counted is not held against its count.
final class Verifier {
  private let vault: Vault
  private let isDeep: Bool
  private let progress: (VerificationProgress) -> Void
  private let isCancelled: () -> Bool

  private(set) var report = VerificationReport()
  private var state = VerificationProgress(bucketCount: VaultFormat.bucketCount)
  /// Files of several names, and how many of them were not met yet.
  private var missingNames: [InodeNumber: (count: Int64, path: VaultPath, isIntact: Bool)] = [:]
  /// How often what changes meanwhile is looked at again.
  private static let tries = 8
  private let buffer = TransferBuffer(count: 1 << 20)

  init(
    _ vault: Vault, isDeep: Bool, progress: @escaping (VerificationProgress) -> Void,
    isCancelled: @escaping () -> Bool
  ) {
    self.vault = vault
    self.isDeep = isDeep
    self.progress = progress
    self.isCancelled = isCancelled
  }

  func run() throws {
    try vault.index.forgetOpened()
    let (changes, nameChanges) = vault.index.read { ($0.changeCount, $0.nameChangeCount) }
    // Buckets count what is stored.
    let isAllStored = vault.index.read(\.uncommitted).operationCount == 0
    state.recordCount = try checkBuckets()
    try walk()
    try countMarksAndSettings()
    // Names that came, went or moved meanwhile were met twice, or not at all.
    if vault.index.read(\.nameChangeCount) == nameChanges {
      for missing in missingNames.values where missing.count != 0 {
        if missing.isIntact { report.intactCount -= 1 }
        add("the number of a file's names", missing.path)
      }
    }
    // Where something cannot be read, what it leads to is not met, and is no stray; nor what has come or gone meanwhile.
    if let recordCount = state.recordCount, report.isClean, isAllStored, vault.index.read(\.changeCount) == changes {
      let reached = state.reachedRecordCount
      report.strayRecordCount = recordCount > reached ? recordCount - reached : 0
    }
  }

  private func add(_ what: String, _ path: VaultPath? = nil, lost: UInt64? = nil) {
    report.add(VerificationReport.Damage(path: path, what: what, lostByteCount: lost))
  }

  /// Runs one step; `false`, and a damage, where it fails.
  private func step(_ path: VaultPath?, _ body: () throws -> Void) throws -> Bool {
    if isCancelled() { throw VaultError.cancelled }
    do {
      try body()
      return true
    } catch {
      switch VaultError.wrapping(error) {
      case let other where Self.saysNothingOfWhatIsStored(other): throw other
      case .damaged(let what): add(what, path)
      // Removed since its name was read.
      case .notFound: return true
      case let other: add(other.description, path)
      }
      return false
    }
  }

  /// Somebody locked the vault or gave up, or there is no room to look.
  private static func saysNothingOfWhatIsStored(_ error: VaultError) -> Bool {
    error == .locked || error == .cancelled || error.isOfRoom
  }

  // MARK: Index

  /// Returns how many rows the buckets count, or nil where one cannot be read.
  private func checkBuckets() throws -> UInt64? {
    var total: UInt64 = 0
    var isWhole = true
    for bucket in 0..<VaultFormat.bucketCount {
      let isGood = try step(nil) { total += try vault.index.read { try $0.verifiedRowCount(of: bucket) } }
      isWhole = isWhole && isGood
      state.checkedBucketCount = bucket + 1
      if state.checkedBucketCount.isMultiple(of: 64) { progress(state) }
    }
    return isWhole ? total : nil
  }

  private func countMarksAndSettings() throws {
    _ = try step(nil) {
      let marks = try vault.index.read { try $0.pendingRemovals() }
      state.reachedRecordCount += UInt64(try vault.index.read { try $0.deposits().count })
      for mark in marks {
        state.reachedRecordCount += 1
        guard let number = mark.inode else { continue }
        // Whoever has it open may still write to it, until it is gone.
        let present = { [vault] () throws -> (Inode, UInt64)? in
          guard try vault.index.read({ try $0.pendingRemovals() }).contains(where: { $0.inode == number }) else {
            return nil
          }
          return try vault.index.read { session in
            guard let inode = try session.inodeIfPresent(number) else { return nil }
            return (inode, try session.attributeRecordCount(of: inode))
          }
        }
        guard let (inode, attributeCount) = try present() else { continue }
        state.reachedRecordCount += 1 + attributeCount
        _ = try checkPages(of: inode, isLeaving: true) { try present()?.0 }
      }
      state.reachedRecordCount += UInt64(try vault.settingNames(prefix: "").count)
    }
  }

  // MARK: Names

  private func walk() throws {
    // A stack of its own: a tree may be deeper than the thread's.
    var folders = [(InodeNumber.rootFolder, VaultPath.root)]
    let isRootGood = try step(.root) {
      state.reachedRecordCount += 1
      report.folderCount += 1
      state.reachedRecordCount += try vault.index.read { session in
        try session.attributeRecordCount(of: session.inode(.rootFolder))
      }
    }
    // What the root folder holds may be readable also where its own record is not.
    while let (folder, path) = folders.popLast() {
      let isGood = try read(folder, path, &folders)
      if isGood, isRootGood || folder != .rootFolder { report.intactCount += 1 }
    }
  }

  private func read(
    _ folder: InodeNumber, _ path: VaultPath, _ folders: inout [(InodeNumber, VaultPath)]
  ) throws -> Bool {
    var cookie: UInt64?
    var entryCount: UInt64 = 0
    var folderCount: UInt64 = 0
    while true {
      var entries: [(entry: Entry, cookie: UInt64)] = []
      let isGood = try step(path) {
        entries = try vault.index.read { try $0.entries(of: folder, after: cookie, limit: 256) }
      }
      guard isGood else { return false }
      guard let last = entries.last else { break }
      cookie = last.cookie
      for (entry, _) in entries {
        entryCount += 1
        if entry.place == 0 { state.reachedRecordCount += 1 }
        if entry.kind == .directory { folderCount += 1 }
        let below = try VaultError.catching { try path.appending(entry.name) }
        if try check(entry, in: folder, below) { folders.append((entry.inode, below)) }
        state.nameCount += 1
        if state.nameCount.isMultiple(of: 256) { progress(state) }
      }
    }
    return try step(path) {
      let isAsSaid = try vault.index.read { session -> Bool in
        guard case .directory(let content)? = try session.inodeIfPresent(folder)?.content else { return false }
        return content.entryCount == entryCount && content.folderCount == folderCount
      }
      if !isAsSaid { try countNames(of: folder) }
    }
  }

  /// Throws where a folder says that it has another number of names than it has. Where some come or go meanwhile they are counted again.
  private func countNames(of folder: InodeNumber) throws {
    func present() throws -> Inode? { try vault.index.read { try $0.inodeIfPresent(folder) } }
    for _ in 0..<Self.tries {
      // Removed by now; where only its record is missing, its name was found to lead nowhere.
      guard let before = try present() else { return }
      var counts = (entries: UInt64(0), folders: UInt64(0))
      var cookie: UInt64?
      while case let entries = try vault.index.read({ try $0.entries(of: folder, after: cookie, limit: 256) }),
        let last = entries.last
      {
        if isCancelled() { throw VaultError.cancelled }
        cookie = last.cookie
        counts.entries += UInt64(entries.count)
        counts.folders += UInt64(entries.count { $0.entry.kind == .directory })
      }
      guard let after = try present() else { return }
      guard case .directory(let content) = after.content else { throw VaultError.notADirectory }
      if content.entryCount == counts.entries, content.folderCount == counts.folders { return }
      if after.content == before.content, after.modified == before.modified, after.changed == before.changed {
        throw VaultError.damaged(what: "the number of a folder's names")
      }
    }
  }

  /// What a name stands for, with how many rows its extended attributes have; nil where it stands for something else by now, or for
  /// nothing.
  private func inode(of entry: Entry, in parent: InodeNumber) throws -> (inode: Inode, attributeCount: UInt64)? {
    try vault.index.read { session in
      guard let present = try session.entry(entry.name, in: parent), present.inode == entry.inode else { return nil }
      let inode = try session.inode(entry.inode)
      guard inode.kind == present.kind else { throw VaultError.damaged(what: "the kind of a file") }
      if case .directory(let content) = inode.content, content.parent != parent {
        throw VaultError.damaged(what: "the parent of a folder")
      }
      return (inode, try session.attributeRecordCount(of: inode))
    }
  }

  /// Returns whether there is a folder to be read.
  private func check(_ entry: Entry, in parent: InodeNumber, _ path: VaultPath) throws -> Bool {
    var isFolder = false
    let damageCount = report.damageCount
    var isKnown = false
    let isGood = try step(path) {
      guard let (inode, attributeCount) = try inode(of: entry, in: parent) else {
        isKnown = true
        return
      }
      isKnown = inode.linkCount > 1 && didMeetBefore(inode, path)
      if isKnown { return }
      state.reachedRecordCount += 1 + attributeCount
      switch inode.content {
      case .directory:
        isFolder = true
        report.folderCount += 1
      case .inline, .object:
        report.fileCount += 1
        report.byteCount += inode.byteCount
        try checkContent(of: inode, entry, in: parent, path)
      case .symbolicLink, .special: report.otherCount += 1
      }
    }
    // A folder is counted when its names are read.
    if isGood, !isKnown, !isFolder, report.damageCount == damageCount {
      report.intactCount += 1
      missingNames[entry.inode]?.isIntact = true
    }
    return isFolder && isGood
  }

  private func didMeetBefore(_ inode: Inode, _ path: VaultPath) -> Bool {
    if let known = missingNames[inode.number] {
      missingNames[inode.number]?.count = known.count - 1
      return true
    }
    missingNames[inode.number] = (Int64(inode.linkCount) - 1, path, false)
    return false
  }

  // MARK: Content

  private func checkContent(
    of inode: Inode, _ entry: Entry, in parent: InodeNumber, _ path: VaultPath
  ) throws {
    // With a snapshot the file's key is unwrapped and held against its commitment.
    let snapshot = try vault.snapshot(of: inode.number)
    if case .inline = inode.content {
      // A small file lies in its record, and is opened at no further price.
      state.readByteCount += UInt64(try snapshot.read(at: 0, into: buffer.bytes))
      return
    }
    guard let checked = try checkPages(of: inode, again: { try self.inode(of: entry, in: parent)?.inode }) else {
      return
    }
    if isDeep { try readPages(of: checked, path, snapshot) }
  }

  /// Checks where a file's content lies. Where it fails and the file has changed since, it is done again.
  ///
  /// - Parameters:
  ///   - isLeaving: it is being removed, its pages before itself.
  ///   - again: what the file is now; nil where it is gone.
  /// - Returns: the file as it was checked; nil where it is gone, or is leaving and was changed each time.
  private func checkPages(
    of found: Inode, isLeaving: Bool = false, again: () throws -> Inode?
  ) throws -> Inode? {
    var inode = found
    for _ in 0..<Self.tries {
      do {
        try checkPages(of: inode, isLeaving)
        return inode
      } catch {
        if Self.saysNothingOfWhatIsStored(VaultError.wrapping(error)) { throw error }
        guard let present = try again() else { return nil }
        if present.content == inode.content, present.byteCount == inode.byteCount, present.revision == inode.revision {
          throw error
        }
        inode = present
      }
    }
    if isLeaving { return nil }
    // Who writes to it waits meanwhile.
    let node = try vault.look { session in try self.vault.node(of: session.node(inode.number)) }
    defer { vault.files.release(node, in: vault) }
    return try node.writing.withLock { _ in
      guard let present = try again() else { return nil }
      try checkPages(of: present, isLeaving)
      return present
    }
  }

  private func checkPages(of inode: Inode, _ isLeaving: Bool) throws {
    guard case .object(let object, let slots) = inode.content else { return }
    let stored = try vault.objects.open(object.number, writing: false).status().byteCount
    var used: UInt64 = 0
    let recordCount = try forEachPage(of: inode, object) { page, _ in used += try check(page, object, slots, stored) }
    if isLeaving ? used > slots.used : used != slots.used {
      throw VaultError.damaged(what: "the number of a file's blocks")
    }
    state.reachedRecordCount += recordCount
  }

  private func readPages(of inode: Inode, _ path: VaultPath, _ snapshot: FileSnapshot) throws {
    guard case .object(let object, _) = inode.content else { return }
    let pageSize = VaultFormat.blocksPerPage << object.blockSizeExponent
    var lost: UInt64 = 0
    _ = try forEachPage(of: inode, object) { _, index in
      let start = index * pageSize
      lost += try unreadable(
        start..<max(start, min(start + pageSize, inode.byteCount)), of: snapshot, object.blockSize)
    }
    if lost > 0 { add("blocks of a file's content", path, lost: lost) }
  }

  /// Returns how many rows were met, those that lead to pages with them.
  private func forEachPage(
    of inode: Inode, _ object: ObjectReference, _ body: (MapPage, UInt64) throws -> Void
  ) throws -> UInt64 {
    let pageCount = MapPage.pageCount(blockCount: object.blockCount(of: inode.byteCount))
    var position = MapPosition()
    var recordCount: UInt64 = 0
    while let (group, next) = try vault.index.read({ session in
      try session.nextMapGroup(of: inode.number, pageCount, from: position)
    }) {
      position = next
      recordCount += group.recordCount
      for index in group.pages {
        if isCancelled() { throw VaultError.cancelled }
        guard let page = try vault.index.read({ try $0.storedPage(inode.number, index) }) else { continue }
        recordCount += 1
        try body(page, index)
      }
    }
    return recordCount
  }

  /// Returns how many slots a page uses.
  private func check(_ page: MapPage, _ object: ObjectReference, _ slots: SlotUse, _ stored: UInt64) throws -> UInt64 {
    var used: UInt64 = 0
    for case let block? in page.blocks {
      used += 1
      guard block.slot < slots.reach, (block.slot + 1) << object.blockSizeExponent <= stored else {
        throw VaultError.damaged(what: "an object is too short")
      }
    }
    return used
  }

  /// Bytes in a range of a file that cannot be read, found block by block where a larger read fails.
  private func unreadable(
    _ range: Range<UInt64>, of snapshot: FileSnapshot, _ blockSize: Int
  ) throws -> UInt64 {
    var lost: UInt64 = 0
    var position = range.lowerBound
    while position < range.upperBound {
      if isCancelled() { throw VaultError.cancelled }
      let count = Int(min(UInt64(buffer.bytes.count), range.upperBound - position))
      let target = UnsafeMutableRawBufferPointer(rebasing: buffer.bytes[..<count])
      if try !canRead(snapshot, at: position, into: target) {
        for offset in stride(from: 0, to: count, by: blockSize) {
          let part = UnsafeMutableRawBufferPointer(rebasing: target[offset..<min(offset + blockSize, count)])
          if try !canRead(snapshot, at: position + UInt64(offset), into: part) { lost += UInt64(part.count) }
        }
      }
      position += UInt64(count)
      state.readByteCount += UInt64(count)
      progress(state)
    }
    return lost
  }

  private func canRead(
    _ snapshot: FileSnapshot, at position: UInt64, into target: UnsafeMutableRawBufferPointer
  ) throws -> Bool {
    do {
      _ = try snapshot.read(at: position, into: target)
      return true
    } catch {
      if Self.saysNothingOfWhatIsStored(VaultError.wrapping(error)) { throw error }
      return false
    }
  }
}
