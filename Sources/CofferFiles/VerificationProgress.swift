/// How far a verification of a vault is.
public struct VerificationProgress: Sendable {
  /// Buckets of the index that were held against their sums, of `bucketCount`.
  public var checkedBucketCount = 0
  public let bucketCount: Int
  /// Records that were met on the way, of `recordCount`.
  public var reachedRecordCount: UInt64 = 0
  /// Nil before they are counted, and where damage keeps them from being counted.
  public var recordCount: UInt64?
  /// Names that were followed.
  public var nameCount: UInt64 = 0
  /// Bytes of content that were read and opened.
  public var readByteCount: UInt64 = 0

  public init(bucketCount: Int) { self.bucketCount = bucketCount }
}
