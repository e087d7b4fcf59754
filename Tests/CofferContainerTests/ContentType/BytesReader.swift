import CofferContainer

/// Bytes in memory. It counts reads outside them.
final class BytesReader: ContentReader {
  let bytes: [UInt8]
  private(set) var readsOutside = 0
  private(set) var bytesRead = 0

  init(_ bytes: [UInt8]) { self.bytes = bytes }
  convenience init(_ text: String) { self.init(Array(text.utf8)) }

  var byteCount: UInt64 { UInt64(bytes.count) }

  func read(at offset: UInt64, into buffer: UnsafeMutableRawBufferPointer) throws -> Int {
    if offset > byteCount || UInt64(buffer.count) > byteCount - offset { readsOutside += 1 }
    guard offset < byteCount else { return 0 }
    // Short reads, as a file of blocks gives them.
    let count = min(buffer.count, bytes.count - Int(offset), 1000)
    buffer.copyBytes(from: bytes[Int(offset)..<(Int(offset) + count)])
    bytesRead += count
    return count
  }
}

/// A sniffer that always says the same.
struct FixedSniffer: ContentSniffer {
  let answer: String?
  func mediaType(of head: [UInt8]) -> String? { answer }
}
