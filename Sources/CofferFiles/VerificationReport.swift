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

    public init(path: VaultPath?, what: String, lostByteCount: UInt64?) {
      self.path = path
      self.what = what
      self.lostByteCount = lostByteCount
    }
  }

  /// Damages that are kept; more are only counted.
  public static let damageLimit = 10_000

  public var fileCount: UInt64 = 0
  public var folderCount: UInt64 = 0
  /// Symbolic links, fifos and sockets.
  public var otherCount: UInt64 = 0
  /// Bytes of all files' content.
  public var byteCount: UInt64 = 0
  /// Files, folders and links without damage.
  public var intactCount: UInt64 = 0
  /// Records that nothing leads to. They take room and do no harm.
  public var strayRecordCount: UInt64 = 0
  public private(set) var damages: [Damage] = []
  public private(set) var damageCount: UInt64 = 0

  public init() {}

  public var isClean: Bool { damageCount == 0 }

  public mutating func add(_ damage: Damage) {
    damageCount += 1
    if damages.count < Self.damageLimit { damages.append(damage) }
  }
}
