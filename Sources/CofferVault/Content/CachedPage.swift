internal import CofferCrypto
internal import CofferFiles

/// A page of a file's block map in memory. Guarded by its node's `state`.
final class CachedPage {
  let index: UInt64
  /// Always 64; nil is a hole.
  var blocks: MapEntries
  /// Whether the index has a row for it.
  var hasRow: Bool
  /// Blocks, by bit, whose slots were written since the last join: the index never named them.
  var fresh: UInt64 = 0
  /// Differs from its row.
  var isDirty = false
  /// Asked for since pages were last given up.
  var wasUsed = false
  private var knownSealer: BlockSealer?

  init(index: UInt64, stored: MapPage?) {
    self.index = index
    hasRow = stored != nil
    blocks = stored?.blocks ?? MapEntries()
    blocks.resize(to: Int(VaultFormat.blocksPerPage))
  }

  /// The page's key is derived once.
  func sealer(_ cipher: FileCipher) -> BlockSealer {
    if let knownSealer { return knownSealer }
    let sealer = cipher.sealer(page: index)
    knownSealer = sealer
    return sealer
  }

  /// The page's key goes with the file's.
  func forgetSealer() { knownSealer = nil }

  var isEmpty: Bool { blocks.isAllHoles }

  /// As it is stored: without the holes at its end.
  func stored(inode: InodeNumber) -> MapPage { MapPage(inode: inode, index: index, blocks: blocks.trimmed) }
}
