internal import CofferCrypto
internal import CofferFiles
internal import CofferSystem
internal import Synchronization

/// The block map: its pages in memory, and the search for those that have blocks.
extension FileNode {
  /// Dirty pages that make the file join by itself, before the next call that writes. A join is one operation: where room is not
  /// ample, its rows shall be few enough for the ballast.
  var dirtyPageLimit: Int { (vault.room.isAmple ? vault.files.mapLimits : .small).changed }

  /// The page in memory, read from the index where it is not there yet, perhaps with others. Without `state`.
  func loadPage(_ index: UInt64) throws -> CachedPage {
    let limit = vault.files.hasRoomForPages ? UInt64(vault.files.mapLimits.keptOfOneFile) : 0
    while true {
      let (known, before, wanted) = state.withLock { _ -> (CachedPage?, UInt64, [UInt64]) in
        if let known = knownPage(index) { return (known, joinCount, []) }
        let pageCount = object.map { MapPage.pageCount(blockCount: $0.reference.blockCount(of: byteCount)) } ?? 0
        let range = pagesAhead.range(for: index, pageCount: pageCount, limit: limit)
        return (nil, joinCount, range.filter { pages[$0] == nil })
      }
      if let known { return known }
      let stored = try storedPages(wanted, for: index)
      let (page, count) = state.withLock { _ -> (CachedPage?, Int) in
        if let known = knownPage(index) { return (known, 0) }
        // Joined meanwhile, and given up again: what was read may be older than that.
        guard joinCount == before else { return (nil, 0) }
        var count = 0
        for (index, stored) in stored where pages[index] == nil {
          pages[index] = CachedPage(index: index, stored: stored)
          count += 1
        }
        // The others nobody has asked for yet: they go first where there is no room.
        return (knownPage(index), count)
      }
      guard let page else { continue }
      if count > 0 { vault.files.didLoadPages(count, for: page) }
      return page
    }
  }

  /// The rows of pages, nil for a page that has none: of `index` alone where another cannot be read.
  private func storedPages(_ wanted: [UInt64], for index: UInt64) throws -> [(UInt64, MapPage?)] {
    if wanted.count > 1 {
      let all = try? vault.index.read { session in
        try session.gather(wanted) { index in (index, try session.storedPage(number, index)) }
      }
      if let all { return all }
    }
    return [(index, try vault.index.read { try $0.storedPage(number, index) })]
  }

  /// Under `state`.
  func knownPage(_ index: UInt64) -> CachedPage? {
    guard let page = pages[index] else { return nil }
    page.wasUsed = true
    return page
  }

  /// Under `state`.
  func markDirty(_ page: CachedPage) {
    guard !page.isDirty else { return }
    page.isDirty = true
    dirtyPageCount += 1
  }

  /// Gives clean pages up that were not asked for lately, or all of them; returns how many.
  ///
  /// - Parameter kept: stays, because somebody has just loaded it and is about to use it.
  func dropCleanPages(all: Bool, but kept: CachedPage? = nil) -> Int {
    state.withLock { _ in
      let before = pages.count
      pages = pages.filter { $0.value.isDirty || ($0.value.wasUsed && !all) || $0.value === kept }
      for page in pages.values { page.wasUsed = false }
      return before - pages.count
    }
  }

  // MARK: Search

  /// Calls `body` with the pages of `range` that may have blocks, ascending or descending, until it answers `false`.
  func forEachPage(
    in range: Range<UInt64>, descending: Bool = false, _ body: (CachedPage) throws -> Bool
  ) throws {
    guard !range.isEmpty else { return }
    let perGroup = MapDirectory.pagesPerGroup
    try forEachGroup(
      in: (range.lowerBound / perGroup)..<((range.upperBound - 1) / perGroup + 1), descending: descending
    ) { group in
      let pages = range.clamped(to: (group * perGroup)..<((group + 1) * perGroup))
      for offset in 0..<UInt64(pages.count) {
        let index = descending ? pages.upperBound - 1 - offset : pages.lowerBound + offset
        let page = try loadPage(index)
        if state.withLock({ _ in page.isEmpty }), !hasDirtyBlock(in: index) { continue }
        guard try body(page) else { return false }
      }
      return true
    }
  }

  /// Groups of pages that have rows, or blocks that have not joined.
  private func forEachGroup(in range: Range<UInt64>, descending: Bool, _ body: (UInt64) throws -> Bool) throws {
    let perDirectory = MapDirectory.groupsPerDirectory
    let directories = (range.lowerBound / perDirectory)..<((range.upperBound - 1) / perDirectory + 1)
    let unjoined = unjoinedGroups()
    for offset in 0..<UInt64(directories.count) {
      let index = descending ? directories.upperBound - 1 - offset : directories.lowerBound + offset
      var directory = try vault.index.read { try $0.mapDirectory(number, index) }
      let first = index * perDirectory
      for group in unjoined where group / perDirectory == index { directory[Int(group - first)] = true }
      if index == 0 { directory[0] = true }
      let groups = range.clamped(to: first..<(first + perDirectory))
      var next =
        descending
        ? directory.last(through: Int(groups.upperBound - 1 - first))
        : directory.next(from: Int(groups.lowerBound - first))
      while let group = next, groups.contains(first + UInt64(group)) {
        guard try body(first + UInt64(group)) else { return }
        next = descending ? directory.last(through: group - 1) : directory.next(from: group + 1)
      }
    }
  }

  private func unjoinedGroups() -> Set<UInt64> {
    state.withLock { _ in
      let perGroup = MapDirectory.pagesPerGroup
      var groups = Set(dirtyBlocks.keys.map { $0 / VaultFormat.blocksPerPage / perGroup })
      for block in sealedBlocks.keys { groups.insert(block / VaultFormat.blocksPerPage / perGroup) }
      if dirtyPageCount > 0 { for page in pages.values where page.isDirty { groups.insert(page.index / perGroup) } }
      return groups
    }
  }

  func hasDirtyBlock(in page: UInt64) -> Bool {
    state.withLock { _ in
      dirtyBlocks.keys.contains { $0 / VaultFormat.blocksPerPage == page }
        || sealedBlocks.keys.contains { $0 / VaultFormat.blocksPerPage == page }
    }
  }

  // MARK: Entries

  /// Puts a block's new place into the map, nil for a hole, and frees the old one. Under `writing` and `state`.
  func replace(_ block: UInt64, in page: CachedPage, with new: MapPage.Block?) {
    let position = Int(block % VaultFormat.blocksPerPage)
    let bit = 1 << UInt64(position) as UInt64
    let old = page.blocks[position]
    guard old != nil || new != nil else { return }
    let isFresh = page.fresh & bit != 0
    // An older pin may reach further than the newest, and looks through it.
    if let pin = pins.last, pin.earlier[block] == nil, pins.contains(where: { block < $0.blockCount }) {
      pin.earlier[block] = ContentPin.Earlier(block: old, isFresh: isFresh, joinCount: joinCount)
    } else if let old {
      if isFresh { slots.giveBack(old.slot..<(old.slot + 1)) } else { slots.releaseAfterJoin(old.slot) }
    }
    if old != nil { slots.didUnuse() }
    if new != nil {
      slots.didUse(1)
      page.fresh |= bit
    } else {
      page.fresh &= ~bit
    }
    page.blocks[position] = new
    markDirty(page)
  }
}

extension IndexSession {
  /// Nil where the page has no row: 64 blocks of hole.
  func storedPage(_ inode: InodeNumber, _ index: UInt64) throws -> MapPage? {
    guard let bytes = try value(.map, rowKeys.mapPage(inode, index)) else { return nil }
    return try MapPage(decoding: bytes, inode: inode, index: index)
  }

  func store(_ page: MapPage) throws { try set(.map, rowKeys.mapPage(page.inode, page.index), page.encoded()) }

  func mapDirectory(_ inode: InodeNumber, _ index: UInt64) throws -> MapDirectory {
    guard let bytes = try value(.mapDirectory, rowKeys.mapDirectory(inode, index)) else { return MapDirectory() }
    return try MapDirectory(decoding: bytes, inode: inode, index: index)
  }

  func store(_ directory: MapDirectory, _ inode: InodeNumber, _ index: UInt64) throws {
    let key = rowKeys.mapDirectory(inode, index)
    if directory.isEmpty {
      try remove(.mapDirectory, key)
    } else {
      try set(.mapDirectory, key, directory.encoded(inode: inode, index: index))
    }
  }

  /// Stores pages, removes the rows of `emptied` ones, and sets the groups' bits after them.
  func store(_ stored: some Collection<MapPage>, removing emptied: [UInt64], of inode: InodeNumber) throws {
    var directories: [UInt64: (known: MapDirectory, new: MapDirectory)] = [:]
    func change(_ group: UInt64, _ value: Bool) throws {
      // Group 0 needs no bit.
      if group == 0 { return }
      let index = group / MapDirectory.groupsPerDirectory
      var entry: (known: MapDirectory, new: MapDirectory)
      if let found = directories[index] {
        entry = found
      } else {
        let known = try mapDirectory(inode, index)
        entry = (known, known)
      }
      entry.new[Int(group % MapDirectory.groupsPerDirectory)] = value
      directories[index] = entry
    }
    _ = try gather(emptied) { try remove(.map, rowKeys.mapPage(inode, $0)) }
    _ = try gather(stored) { page in
      try store(page)
      try change(page.index / MapDirectory.pagesPerGroup, true)
    }
    let filled = Set(stored.map { $0.index / MapDirectory.pagesPerGroup })
    for group in Set(emptied.map { $0 / MapDirectory.pagesPerGroup }) where !filled.contains(group) && group != 0 {
      let pages = (group * MapDirectory.pagesPerGroup)..<((group + 1) * MapDirectory.pagesPerGroup)
      if try pages.allSatisfy({ try value(.map, rowKeys.mapPage(inode, $0)) == nil }) { try change(group, false) }
    }
    for (index, entry) in directories where entry.known != entry.new { try store(entry.new, inode, index) }
  }
}
