internal import CofferSystem
internal import Synchronization

/// Buffers that are used again, so that reading or writing a block costs no allocation.
final class BufferPool: Sendable {
  private struct Kept: @unchecked Sendable { let buffer: TransferBuffer }

  private let kept = Mutex<(buffers: [Kept], bytes: Int)>(([], 0))
  /// Bytes kept at most.
  private static let limit = 1 << 20

  /// A buffer of at least `count` bytes with anything in it.
  func take(_ count: Int) -> TransferBuffer {
    take { $0 >= count } ?? TransferBuffer(count: max(count, 4096))
  }

  /// A buffer of `count` bytes with anything in it, for whoever uses all that there is.
  func take(exactly count: Int) -> TransferBuffer {
    take { $0 == count } ?? TransferBuffer(count: count)
  }

  private func take(where isSuitable: (Int) -> Bool) -> TransferBuffer? {
    kept.withLock { kept -> Kept? in
      guard let position = kept.buffers.lastIndex(where: { isSuitable($0.buffer.bytes.count) }) else { return nil }
      let found = kept.buffers.remove(at: position)
      kept.bytes -= found.buffer.bytes.count
      return found
    }?.buffer
  }

  /// Takes a buffer back that holds no plaintext.
  func give(_ buffer: TransferBuffer) {
    let item = Kept(buffer: buffer)
    kept.withLock { kept in
      guard kept.bytes + item.buffer.bytes.count <= Self.limit else { return }
      kept.buffers.append(item)
      kept.bytes += item.buffer.bytes.count
    }
  }

  /// Lends `count` bytes for ciphertext.
  func withCiphertext<Result>(
    _ count: Int, _ body: (UnsafeMutableRawBufferPointer) throws -> Result
  ) rethrows -> Result {
    let buffer = take(count)
    defer { give(buffer) }
    return try body(UnsafeMutableRawBufferPointer(rebasing: buffer.bytes[..<count]))
  }

  /// Lends `count` bytes for plaintext, which are overwritten afterwards.
  func withPlaintext<Result>(
    _ count: Int, _ body: (UnsafeMutableRawBufferPointer) throws -> Result
  ) rethrows -> Result {
    let buffer = take(count)
    let bytes = UnsafeMutableRawBufferPointer(rebasing: buffer.bytes[..<count])
    defer {
      overwrite(bytes)
      give(buffer)
    }
    return try body(bytes)
  }
}

/// Plaintext that grows and shrinks, overwritten wherever it is left.
struct PlainBytes: ~Copyable {
  private var storage: TransferBuffer?
  private(set) var count = 0

  var bytes: UnsafeRawBufferPointer {
    guard let storage else { return UnsafeRawBufferPointer(start: nil, count: 0) }
    return UnsafeRawBufferPointer(rebasing: storage.bytes[..<count])
  }

  init() {}

  init(copying bytes: UnsafeRawBufferPointer) {
    resize(to: bytes.count)
    write(bytes, at: 0)
  }

  /// New bytes are zero, and so are those that are cut off and come back.
  mutating func resize(to newCount: Int) {
    if newCount > storage?.bytes.count ?? 0 {
      let larger = TransferBuffer(
        count: max(newCount, min(2 * count, newCount + (256 << 10)), 512), startsAtPage: false)
      larger.bytes.initializeMemory(as: UInt8.self, repeating: 0)
      larger.bytes.copyMemory(from: bytes)
      storage = larger
    } else if newCount < count, let storage {
      overwrite(UnsafeMutableRawBufferPointer(rebasing: storage.bytes[newCount..<count]))
    }
    count = newCount
  }

  mutating func write(_ source: UnsafeRawBufferPointer, at offset: Int) {
    guard let storage, !source.isEmpty else { return }
    UnsafeMutableRawBufferPointer(rebasing: storage.bytes[offset..<(offset + source.count)]).copyMemory(from: source)
  }

  mutating func zero(_ range: Range<Int>) {
    guard let storage else { return }
    overwrite(UnsafeMutableRawBufferPointer(rebasing: storage.bytes[range]))
  }
}
