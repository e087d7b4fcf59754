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
  var blocks: MapEntries

  private static let headerByteCount = 18

  static func pageCount(blockCount: UInt64) -> UInt64 {
    (blockCount + VaultFormat.blocksPerPage - 1) / VaultFormat.blocksPerPage
  }

  func encoded() -> [UInt8] {
    let byteCount = Self.headerByteCount + blocks.stored.count
    return [UInt8](unsafeUninitializedCapacity: byteCount) { storage, initialized in
      let bytes = UnsafeMutableRawBufferPointer(storage)
      bytes.storeBytes(of: inode.value.bigEndian, toByteOffset: 0, as: UInt64.self)
      bytes.storeBytes(of: index.bigEndian, toByteOffset: 8, as: UInt64.self)
      bytes.storeBytes(of: UInt16(blocks.count).bigEndian, toByteOffset: 16, as: UInt16.self)
      UnsafeMutableRawBufferPointer(rebasing: bytes[Self.headerByteCount...]).copyBytes(from: blocks.stored)
      initialized = byteCount
    }
  }

  init(inode: InodeNumber, index: UInt64, blocks: MapEntries) {
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
    guard count <= VaultFormat.blocksPerPage, reader.remaining == count * MapEntries.entryByteCount else {
      throw MalformedBytes()
    }
    self.inode = inode
    self.index = index
    blocks = try MapEntries(stored: bytes[Self.headerByteCount...])
  }
}
