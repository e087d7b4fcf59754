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
  /// Nil is a hole: zeros that were never written.
  var blocks: [Block?]

  static func capacity(at index: UInt64, blockCount: UInt64) -> Int {
    Int(min(VaultFormat.blocksPerPage, blockCount - index * VaultFormat.blocksPerPage))
  }

  static func pageCount(blockCount: UInt64) -> UInt64 {
    (blockCount + VaultFormat.blocksPerPage - 1) / VaultFormat.blocksPerPage
  }

  func encoded() -> [UInt8] {
    var writer = ByteWriter()
    writer.write(inode.value)
    writer.write(index)
    writer.write(UInt16(blocks.count))
    for block in blocks {
      // 0 is a hole, so slots are stored one higher.
      writer.write(block.map { $0.slot + 1 } ?? 0)
      writer.write(fixed: block?.seal.bytes ?? [UInt8](repeating: 0, count: BlockSeal.byteCount))
    }
    return writer.bytes
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
    let count = try reader.read(UInt16.self)
    guard count <= VaultFormat.blocksPerPage else { throw MalformedBytes() }
    self.inode = inode
    self.index = index
    blocks = []
    for _ in 0..<count {
      let slot = try reader.read(UInt64.self)
      guard let seal = BlockSeal(bytes: try reader.read(fixed: BlockSeal.byteCount)), slot <= 1 << 50 else {
        throw MalformedBytes()
      }
      blocks.append(slot == 0 ? nil : Block(slot: slot - 1, seal: seal))
    }
    try reader.finish()
  }
}
