/// Bytes that can be read at any place, and do not change while this is held: a snapshot of a file in the vault.
public protocol ContentReader {
  /// How many bytes there are.
  var byteCount: UInt64 { get }

  /// Reads at `offset` into `buffer`; returns how many bytes, 0 only at the end or for an empty buffer. Behind them `buffer` may
  /// change.
  func read(at offset: UInt64, into buffer: UnsafeMutableRawBufferPointer) throws -> Int
}

extension ContentReader {
  /// Fills `buffer` from `offset` on, as far as there are bytes; returns how many.
  func readFully(at offset: UInt64, into buffer: UnsafeMutableRawBufferPointer) throws -> Int {
    var filled = 0
    while filled < buffer.count, offset + UInt64(filled) < byteCount {
      let count = try read(
        at: offset + UInt64(filled), into: UnsafeMutableRawBufferPointer(rebasing: buffer[filled...]))
      if count == 0 { break }
      filled += count
    }
    return filled
  }

  /// Exactly `count` bytes at `offset`; nil when there are fewer.
  func bytes(at offset: UInt64, count: Int) throws -> [UInt8]? {
    guard count >= 0, offset <= byteCount, UInt64(count) <= byteCount - offset else { return nil }
    // What is smaller the allocator may keep as it is when it is freed (`AllocatorTuning`).
    let result = try [UInt8](unsafeUninitializedCapacity: max(count, 2048)) { buffer, initialized in
      let target = UnsafeMutableRawBufferPointer(start: buffer.baseAddress, count: count)
      initialized = try readFully(at: offset, into: target)
    }
    return result.count == count ? result : nil
  }
}
