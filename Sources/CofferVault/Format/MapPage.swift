internal import CofferCrypto
internal import CofferFiles
internal import CofferSystem

/// One page of a file's block map: where 64 consecutive blocks lie in the object, and their nonces and tags.
///
/// Pinning nonce and tag here, in an authenticated record, is what makes a swapped, truncated, zeroed or replayed block
/// visible for the price of one pass of AES-GCM.
struct MapPage: Equatable, Sendable {
  struct Block: Equatable, Sendable {
    /// Position in the object, in blocks.
    let slot: UInt64
    let seal: BlockSeal
  }

  let inode: InodeNumber
  let index: UInt64
  /// Nil is a hole: zeros that were never written. Behind the last block that is stored there are only holes.
  var blocks: [Block?]

  private static let headerByteCount = 18
  private static let entryByteCount = 8 + BlockSeal.byteCount

  static func pageCount(blockCount: UInt64) -> UInt64 {
    (blockCount + VaultFormat.blocksPerPage - 1) / VaultFormat.blocksPerPage
  }

  func encoded() -> [UInt8] {
    let byteCount = Self.headerByteCount + blocks.count * Self.entryByteCount
    return [UInt8](unsafeUninitializedCapacity: byteCount) { storage, initialized in
      let bytes = UnsafeMutableRawBufferPointer(storage)
      bytes.storeBytes(of: inode.value.bigEndian, toByteOffset: 0, as: UInt64.self)
      bytes.storeBytes(of: index.bigEndian, toByteOffset: 8, as: UInt64.self)
      bytes.storeBytes(of: UInt16(blocks.count).bigEndian, toByteOffset: 16, as: UInt16.self)
      for (position, block) in blocks.enumerated() {
        let start = Self.headerByteCount + position * Self.entryByteCount
        let entry = UnsafeMutableRawBufferPointer(rebasing: bytes[start..<(start + Self.entryByteCount)])
        guard let block else {
          entry.initializeMemory(as: UInt8.self, repeating: 0)
          continue
        }
        // 0 is a hole, so slots are stored one higher.
        entry.storeBytes(of: (block.slot + 1).bigEndian, as: UInt64.self)
        block.seal.write(to: UnsafeMutableRawBufferPointer(rebasing: entry[8...]))
      }
      initialized = byteCount
    }
  }

  init(inode: InodeNumber, index: UInt64, blocks: [Block?]) {
    self.inode = inode
    self.index = index
    self.blocks = blocks
  }

  init(decoding bytes: [UInt8], inode: InodeNumber, index: UInt64) throws {
    var reader = ByteReader(bytes)
    guard try reader.read(UInt64.self) == inode.value, try reader.read(UInt64.self) == index else {
      throw MalformedBytes()
    }
    let count = Int(try reader.read(UInt16.self))
    guard count <= VaultFormat.blocksPerPage, reader.remaining == count * Self.entryByteCount else {
      throw MalformedBytes()
    }
    self.inode = inode
    self.index = index
    blocks = []
    blocks.reserveCapacity(Int(VaultFormat.blocksPerPage))
    for position in 0..<count {
      let slot = try reader.read(UInt64.self)
      let start = Self.headerByteCount + position * Self.entryByteCount + 8
      guard let seal = BlockSeal(bytes: bytes[start..<(start + BlockSeal.byteCount)]), slot <= VaultFormat.slotLimit
      else { throw MalformedBytes() }
      try reader.skip(BlockSeal.byteCount)
      blocks.append(slot == 0 ? nil : Block(slot: slot - 1, seal: seal))
    }
  }
}
