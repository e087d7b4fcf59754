internal import CofferCrypto
internal import CofferSystem

/// What a bucket of rows must hold: how many, and a keyed hash over (table ‖ key ‖ tag) of each, joined by exclusive or.
///
/// The join can be updated by difference, and because the hash is keyed and the sum is sealed, nobody without the
/// metadata key can find another set of rows with the same sum.
struct Bucket: Equatable, Sendable {
  var sum = SIMD4<UInt64>(repeating: 0)
  var count: UInt32 = 0

  static let byteCount = 36

  mutating func insert(_ hash: SIMD4<UInt64>) {
    sum ^= hash
    count += 1
  }

  var isEmpty: Bool { count == 0 && sum == SIMD4(repeating: 0) }

  mutating func remove(_ hash: SIMD4<UInt64>) {
    sum ^= hash
    count &-= 1
  }

  static func encode(_ page: some Sequence<Bucket>) -> [UInt8] {
    var writer = ByteWriter(capacity: VaultFormat.bucketsPerPage * 40)
    for bucket in page { bucket.encode(to: &writer) }
    return writer.bytes
  }

  /// Some of the vault's, by number: what ``encode(_:to:)`` writes of each.
  static let numberedByteCount = 2 + byteCount

  /// At most 255 of the vault's buckets, by number.
  static func encode(_ buckets: [Int: Bucket], to writer: inout ByteWriter) {
    writer.write(UInt8(buckets.count))
    for (number, bucket) in buckets.sorted(by: { $0.key < $1.key }) {
      writer.write(UInt16(number))
      bucket.encode(to: &writer)
    }
  }

  static func decodeNumbered(from reader: inout ByteReader, limit: Int) throws(MalformedBytes) -> [Int: Bucket] {
    let count = try reader.read(UInt8.self)
    guard count <= limit else { throw MalformedBytes() }
    var buckets: [Int: Bucket] = [:]
    var last = -1
    for _ in 0..<count {
      let number = Int(try reader.read(UInt16.self))
      guard number > last, number < VaultFormat.bucketCount else { throw MalformedBytes() }
      buckets[number] = try Bucket(from: &reader)
      last = number
    }
    return buckets
  }

  func encode(to writer: inout ByteWriter) {
    for lane in 0..<4 { writer.write(sum[lane]) }
    writer.write(count)
  }

  static func decodePage(_ bytes: [UInt8]) throws -> [Bucket] {
    var reader = ByteReader(bytes)
    var page: [Bucket] = []
    for _ in 0..<VaultFormat.bucketsPerPage { page.append(try Bucket(from: &reader)) }
    try reader.finish()
    return page
  }
}

extension Bucket {
  init(from reader: inout ByteReader) throws(MalformedBytes) {
    for lane in 0..<4 { sum[lane] = try reader.read() }
    count = try reader.read()
  }
}

/// Hashes rows for the buckets.
struct RowHasher: Sendable {
  private let keyedHash: KeyedHash

  init(metadataKey: SecretKey) { keyedHash = KeyedHash(key: metadataKey.derived("buckets")) }

  func hash(_ table: RecordTable, _ row: RowKey, _ tag: RowTag) -> SIMD4<UInt64> {
    withUnsafeTemporaryAllocation(byteCount: 33, alignment: 1) { bytes in
      bytes[0] = table.rawValue
      bytes.storeBytes(of: row.high.bigEndian, toByteOffset: 1, as: UInt64.self)
      bytes.storeBytes(of: row.low.bigEndian, toByteOffset: 9, as: UInt64.self)
      bytes.storeBytes(of: tag.high.bigEndian, toByteOffset: 17, as: UInt64.self)
      bytes.storeBytes(of: tag.low.bigEndian, toByteOffset: 25, as: UInt64.self)
      return keyedHash.withCode(for: UnsafeRawBufferPointer(bytes)) { code in
        var result = SIMD4<UInt64>(repeating: 0)
        for lane in 0..<4 {
          result[lane] = UInt64(bigEndian: code.loadUnaligned(fromByteOffset: 8 * lane, as: UInt64.self))
        }
        return result
      }
    }
  }
}
