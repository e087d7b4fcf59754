/// The constants of the stored form. Documentation/FileFormat.md states the form byte for byte.
enum VaultFormat {
  /// 0 may change without migration.
  static let version = 0
  static let description = "coffer.json"
  static let keybag = "keybag.json"
  static let index = "index.sqlite"
  /// SQLite's write-ahead log: beside the index while it is open, and after a crash.
  static let indexLog = index + "-wal"
  /// Beside the index while small commits gather there, and after a crash.
  static let journal = "journal"
  static let objects = "objects"
  static let lock = "lock"
  static let ballast = "ballast"

  /// Largest `coffer.json` or `keybag.json` that is read.
  static let headerLimit = 64 << 10
  /// Content up to this size lives inside the inode's record.
  static let inlineLimit = 4 << 10
  /// Block map entries in one page.
  static let blocksPerPage: UInt64 = 64
  /// Rows fall into 2¹⁴ buckets, so that a bucket of a vault of a million files has about a hundred.
  static let bucketBits = 14
  static let bucketCount = 1 << bucketBits
  static let bucketsPerPage = 64
  /// Objects that may be made between two commits, and so be left over by a crash.
  static let uncommittedObjects: UInt64 = 512
  /// Bytes of a file at most: one pebibyte.
  static let fileSizeLimit: UInt64 = 1 << 50
  /// Slots of an object at most.
  static let slotLimit: UInt64 = 1 << 50
  /// Bytes of a symbolic link's target at most, as Linux has it.
  static let linkTargetLimit = 4095
  /// Names of a file at most.
  static let linkLimit = UInt32(Int32.max)
  /// Extended attributes of a file at most.
  static let attributeLimit: UInt32 = 256
  static let attributeNameLimit = 255
  /// Bytes of an extended attribute's value at most.
  static let attributeValueLimit = 64 << 10
  static let blockSizeExponents: ClosedRange<UInt8> = 12...20

  /// The block size for a file of `byteCount` bytes, so that the padding of its last block costs a few per cent. 16 KiB
  /// at most, by measurement (Documentation/Performance.md): larger blocks gain little in sequence, and each doubling
  /// takes nearly half of the speed at random.
  static func blockSizeExponent(for byteCount: UInt64?) -> UInt8 {
    guard let byteCount else { return 14 }
    var exponent: UInt8 = 12
    while exponent < 14, byteCount >> (exponent + 1) >= 16 { exponent += 1 }
    return exponent
  }
}
