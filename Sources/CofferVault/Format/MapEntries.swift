internal import CofferCrypto
internal import CofferSystem

/// The entries of a page of a block map, in the form in which they are stored.
///
/// An entry is taken out when it is asked for. Most readers want a few of the 64, so a page from the index costs one
/// look at its slots and one copy.
struct MapEntries: Equatable, Sendable {
  static let entryByteCount = 8 + BlockSeal.byteCount

  /// 36 bytes each: the slot plus one, because 0 is a hole, as 8 bytes, and the seal.
  private(set) var stored: [UInt8]

  init() { stored = [] }

  /// Throws `MalformedBytes` where a slot is out of range, or a hole has a seal.
  init(stored: some Collection<UInt8>) throws(MalformedBytes) {
    guard stored.count.isMultiple(of: Self.entryByteCount) else { throw MalformedBytes() }
    self.stored = Array(stored)
    let isValid = self.stored.withUnsafeBytes { bytes in
      stride(from: 0, to: bytes.count, by: Self.entryByteCount).allSatisfy { start in
        let slot = UInt64(bigEndian: bytes.loadUnaligned(fromByteOffset: start, as: UInt64.self))
        guard slot == 0 else { return slot <= VaultFormat.slotLimit }
        return bytes[(start + 8)..<(start + Self.entryByteCount)].allSatisfy { $0 == 0 }
      }
    }
    guard isValid else { throw MalformedBytes() }
  }

  /// Cuts entries off, or adds holes.
  mutating func resize(to count: Int) {
    let byteCount = count * Self.entryByteCount
    if byteCount <= stored.count {
      stored.removeLast(stored.count - byteCount)
    } else {
      stored.reserveCapacity(byteCount)
      stored.append(contentsOf: repeatElement(0, count: byteCount - stored.count))
    }
  }

  /// Without the holes at the end.
  var trimmed: MapEntries {
    var trimmed = self
    trimmed.resize(to: (lastIndex { $0 != nil } ?? -1) + 1)
    return trimmed
  }

  var isAllHoles: Bool { allSatisfy { $0 == nil } }
}

extension MapEntries: RandomAccessCollection, MutableCollection {
  var startIndex: Int { 0 }
  var endIndex: Int { stored.count / Self.entryByteCount }

  subscript(position: Int) -> MapPage.Block? {
    get {
      let start = position * Self.entryByteCount
      precondition(position >= 0 && start < stored.count)
      return stored.withUnsafeBytes { bytes in
        let slot = UInt64(bigEndian: bytes.loadUnaligned(fromByteOffset: start, as: UInt64.self))
        if slot == 0 { return nil }
        let seal = UnsafeRawBufferPointer(rebasing: bytes[(start + 8)..<(start + Self.entryByteCount)])
        return MapPage.Block(slot: slot - 1, seal: BlockSeal(reading: seal))
      }
    }
    set {
      let start = position * Self.entryByteCount
      precondition(position >= 0 && start < stored.count)
      stored.withUnsafeMutableBytes { bytes in
        let entry = UnsafeMutableRawBufferPointer(rebasing: bytes[start..<(start + Self.entryByteCount)])
        guard let newValue else {
          entry.initializeMemory(as: UInt8.self, repeating: 0)
          return
        }
        entry.storeBytes(of: (newValue.slot + 1).bigEndian, as: UInt64.self)
        newValue.seal.write(to: UnsafeMutableRawBufferPointer(rebasing: entry[8...]))
      }
    }
  }
}

extension MapEntries: ExpressibleByArrayLiteral {
  init(_ blocks: some Sequence<MapPage.Block?>) {
    self.init()
    for block in blocks { append(block) }
  }

  init(arrayLiteral elements: MapPage.Block?...) { self.init(elements) }

  mutating func append(_ block: MapPage.Block?) {
    resize(to: count + 1)
    self[count - 1] = block
  }
}
