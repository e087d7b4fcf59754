internal import CofferSystem

/// The kinds of sealed rows. The raw value is part of what a row is bound to.
enum RecordKind: UInt8, CaseIterable {
  case entry = 1
  case inode = 2
  case map = 3
  case setting = 4
  case pending = 5
  case bucket = 6
  case root = 7
  /// One extended attribute.
  case attribute = 8
  /// Which groups of a file's map pages have rows; see ``MapDirectory``.
  case mapDirectory = 9
  /// A file that was stored while the vault was locked, and becomes complete when it is unlocked.
  case deposit = 10

  /// Entries are small and read in runs, so they have a clustered table; the others are large and looked up one by one.
  var table: RecordTable { self == .entry ? .entry : .record }
}

/// The tables whose rows the buckets count. The raw value is part of what a bucket's hash covers.
enum RecordTable: UInt8, CaseIterable {
  case entry = 1
  case record = 2
}

/// Hides a record's exact length: its bytes behind their count, zeros up to a multiple of `step`.
enum Padding {
  static func pad(_ bytes: [UInt8]) -> [UInt8] { bytes.withUnsafeBytes { pad($0) } }

  static func pad(_ bytes: UnsafeRawBufferPointer) -> [UInt8] {
    let step = bytes.count < 512 ? 64 : 512
    let total = (bytes.count + 4 + step - 1) / step * step
    return [UInt8](unsafeUninitializedCapacity: total) { buffer, initialized in
      let padded = UnsafeMutableRawBufferPointer(buffer)
      padded.storeBytes(of: UInt32(bytes.count).bigEndian, as: UInt32.self)
      UnsafeMutableRawBufferPointer(rebasing: padded[4...]).copyMemory(from: bytes)
      for index in (4 + bytes.count)..<total { padded[index] = 0 }
      initialized = total
    }
  }

  static func unpad(_ bytes: [UInt8]) throws(MalformedBytes) -> [UInt8] {
    var reader = ByteReader(bytes)
    return try reader.read(countedUpTo: bytes.count)
  }

  /// The bytes within the padding, where they are.
  static func unpad(_ bytes: UnsafeRawBufferPointer) throws(MalformedBytes) -> UnsafeRawBufferPointer {
    guard bytes.count >= 4 else { throw MalformedBytes() }
    let count = Int(UInt32(bigEndian: bytes.loadUnaligned(as: UInt32.self)))
    guard count <= bytes.count - 4 else { throw MalformedBytes() }
    return UnsafeRawBufferPointer(rebasing: bytes[4..<(4 + count)])
  }
}
