/// One entry of a ZIP archive's central directory (APPNOTE 4.3.12), and the header before its data (4.3.7).
///
/// ```
/// central                                   local
/// 0  signature 50 4B 01 02                  0  signature 50 4B 03 04
/// 8  flags (2)   10 method (2)              6  flags (2)   8 method (2)
/// 20 compressed size (4)  24 size (4)       18 compressed size (4)  22 size (4)
/// 28 name, 30 extra, 32 comment length (2)  26 name, 28 extra length (2)
/// 34 disk (2)    42 offset of the local     30 name, extra, data
/// 46 name, extra, comment
/// ```
struct ZipRecord {
  let name: [UInt8]
  let method: UInt16
  let flags: UInt16
  /// Compressed, as it lies in the archive.
  let byteCount: UInt64
  let uncompressedByteCount: UInt64
  /// Where its local header starts.
  let offset: UInt64

  static let signature: [UInt8] = [0x50, 0x4b, 0x01, 0x02]
  static let localSignature: [UInt8] = [0x50, 0x4b, 0x03, 0x04]
  private static let size = 46
  private static let localSize = 30

  /// The records in `directory`; nil unless it holds exactly `count` and nothing else.
  static func all(in directory: [UInt8], count: Int) -> [ZipRecord]? {
    var rest = directory[...]
    var records: [ZipRecord] = []
    for _ in 0..<count {
      guard let record = ZipRecord(takenFrom: &rest) else { return nil }
      records.append(record)
    }
    return rest.isEmpty ? records : nil
  }

  private init?(takenFrom bytes: inout ArraySlice<UInt8>) {
    guard bytes.count >= Self.size, bytes.starts(with: Self.signature) else { return nil }
    let fields = LittleEndian(bytes)
    let nameCount = Int(fields.uint16(28))
    let count = Self.size + nameCount + Int(fields.uint16(30)) + Int(fields.uint16(32))
    guard bytes.count >= count, nameCount > 0, fields.uint16(34) == 0,
      // The values that say "look into the ZIP64 field".
      fields.uint32(20) != .max, fields.uint32(24) != .max, fields.uint32(42) != .max
    else { return nil }
    flags = fields.uint16(8)
    method = fields.uint16(10)
    byteCount = UInt64(fields.uint32(20))
    uncompressedByteCount = UInt64(fields.uint32(24))
    offset = UInt64(fields.uint32(42))
    name = Array(bytes.dropFirst(Self.size).prefix(nameCount))
    bytes = bytes.dropFirst(count)
  }

  /// Where this entry's data starts; nil unless the header there says the same as the directory does.
  func dataOffset(in content: some ContentReader) throws -> UInt64? {
    guard let header = try content.bytes(at: offset, count: Self.localSize + name.count),
      header.starts(with: Self.localSignature)
    else { return nil }
    let fields = LittleEndian(header[...])
    let hasDescriptor = flags & 8 != 0
    guard fields.uint16(6) == flags, fields.uint16(8) == method, Int(fields.uint16(26)) == name.count,
      header.dropFirst(Self.localSize).elementsEqual(name),
      // Where sizes follow the data, the header may leave them out.
      UInt64(fields.uint32(18)) == byteCount || hasDescriptor && fields.uint32(18) == 0,
      UInt64(fields.uint32(22)) == uncompressedByteCount || hasDescriptor && fields.uint32(22) == 0
    else { return nil }
    return offset + UInt64(Self.localSize + name.count) + UInt64(fields.uint16(28))
  }
}

/// Numbers in little-endian order at places counted from a slice's start. The caller has checked its length.
struct LittleEndian {
  private let bytes: ArraySlice<UInt8>

  init(_ bytes: ArraySlice<UInt8>) { self.bytes = bytes }

  func uint16(_ place: Int) -> UInt16 {
    let start = bytes.startIndex + place
    return UInt16(bytes[start]) | UInt16(bytes[start + 1]) << 8
  }

  func uint32(_ place: Int) -> UInt32 { UInt32(uint16(place)) | UInt32(uint16(place + 2)) << 16 }
}
