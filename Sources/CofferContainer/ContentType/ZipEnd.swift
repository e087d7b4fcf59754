/// The end of central directory record of a ZIP archive (APPNOTE 4.3.16).
///
/// ```
/// 0  signature 50 4B 05 06      12 size of the central directory (4)
/// 4  number of this disk (2)    16 its offset (4)
/// 6  disk of the directory (2)  20 length of the comment (2)
/// 8  entries on this disk (2)   22 comment
/// 10 entries (2)
/// ```
struct ZipEnd {
  /// Where the record starts.
  let offset: UInt64
  let entryCount: Int
  let directoryOffset: UInt64
  let directorySize: UInt64

  static let signature: [UInt8] = [0x50, 0x4b, 0x05, 0x06]
  private static let size = 22
  /// As far from the file's end as the record can start: its own size and the longest comment.
  static let reach = size + 65_535

  /// Where in the last `reach` bytes of a file an end record could start, from the back to the front.
  private static func candidates(in tail: [UInt8]) -> [Int] {
    guard tail.count >= size else { return [] }
    return (0...(tail.count - size)).reversed().filter { tail[$0..<($0 + 4)].elementsEqual(signature) }
  }

  private static func tail(of content: some ContentReader) throws -> [UInt8] {
    let count = Int(min(UInt64(reach), content.byteCount))
    return try content.bytes(at: content.byteCount - UInt64(count), count: count) ?? []
  }

  /// The record that every reader would find: the last signature in the file, with a comment that ends with the file.
  init?(of content: some ContentReader) throws {
    let tail = try Self.tail(of: content)
    guard let start = Self.candidates(in: tail).first else { return nil }
    let fields = LittleEndian(tail[start...])
    let count = fields.uint16(10)
    guard start + Self.size + Int(fields.uint16(20)) == tail.count,
      fields.uint16(4) == 0, fields.uint16(6) == 0, fields.uint16(8) == count,
      // The values that say "look into the ZIP64 record".
      count != .max, fields.uint32(12) != .max, fields.uint32(16) != .max
    else { return nil }
    offset = content.byteCount - UInt64(tail.count - start)
    entryCount = Int(count)
    directorySize = UInt64(fields.uint32(12))
    directoryOffset = UInt64(fields.uint32(16))
  }

  /// Whether a forgiving reader of ZIP could find an archive at the end of `content`, whatever stands before it: an end
  /// record that leads to a central directory, or that follows the locator of a ZIP64 record.
  static func isInTail(of content: some ContentReader) throws -> Bool {
    let tail = try tail(of: content)
    let start = content.byteCount - UInt64(tail.count)
    let candidates = candidates(in: tail)
    // No file has many of them by chance, and each costs two reads.
    guard candidates.count <= 16 else { return true }
    for candidate in candidates {
      let fields = LittleEndian(tail[candidate...])
      let end = start + UInt64(candidate)
      let size = UInt64(fields.uint32(12))
      // Forgiving readers find the directory by its offset, or by its size back from the record.
      for place in [UInt64(fields.uint32(16)), size <= end ? end - size : end] {
        if try content.bytes(at: place, count: 4) == ZipRecord.signature { return true }
      }
      if candidate >= 20, tail[(candidate - 20)...].starts(with: [0x50, 0x4b, 0x06, 0x07]) { return true }
    }
    return false
  }
}
