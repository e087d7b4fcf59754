public import CofferFiles

/// What a verification of a vault found.
public struct VerificationReport: Sendable {
  /// Something that is not as it was written.
  public struct Damage: Sendable, Hashable {
    /// The file or folder that it touches, so far as its name can be read; nil where it is none's alone.
    public let path: VaultPath?
    /// The part, without names.
    public let what: String
    /// Bytes of the file's content that cannot be read; nil where that is not known, or all of them.
    public let lostByteCount: UInt64?
  }

  /// Damages that are kept; more are only counted.
  static let damageLimit = 10_000

  public internal(set) var fileCount: UInt64 = 0
  public internal(set) var folderCount: UInt64 = 0
  /// Symbolic links, fifos and sockets.
  public internal(set) var otherCount: UInt64 = 0
  /// Bytes of all files' content.
  public internal(set) var byteCount: UInt64 = 0
  /// Files, folders and links without damage.
  public internal(set) var intactCount: UInt64 = 0
  /// Records that nothing leads to. They take room and do no harm.
  public internal(set) var strayRecordCount: UInt64 = 0
  public internal(set) var damages: [Damage] = []
  public internal(set) var damageCount: UInt64 = 0

  public var isClean: Bool { damageCount == 0 }

  mutating func add(_ damage: Damage) {
    damageCount += 1
    if damages.count < Self.damageLimit { damages.append(damage) }
  }
}

/// How far a verification is.
public struct VerificationProgress: Sendable {
  /// Buckets of the index that were held against their sums, of `bucketCount`.
  public internal(set) var checkedBucketCount = 0
  public let bucketCount = VaultFormat.bucketCount
  /// Names that were followed.
  public internal(set) var nameCount: UInt64 = 0
  /// Bytes of content that were read and opened.
  public internal(set) var readByteCount: UInt64 = 0
}
