/// Writes a binary record: integers big-endian, byte strings behind their length.
public struct ByteWriter: Sendable {
  @usableFromInline var storage: [UInt8] = []
  public var bytes: [UInt8] { storage }

  /// - Parameter capacity: bytes to make room for.
  public init(capacity: Int = 0) { storage.reserveCapacity(capacity) }

  @inlinable
  public mutating func write(_ value: some FixedWidthInteger) {
    withUnsafeBytes(of: value.bigEndian) { storage.append(contentsOf: $0) }
  }
  /// Bytes whose count the format fixes.
  @inlinable
  public mutating func write(fixed value: some Sequence<UInt8>) { storage.append(contentsOf: value) }
  /// A byte string of at most 2³²-1 bytes behind its length in 4 bytes.
  public mutating func write(counted value: [UInt8]) {
    write(UInt32(value.count))
    storage.append(contentsOf: value)
  }
}

/// What a binary record's reader refuses: it ends too soon, or holds a value outside its range.
public struct MalformedBytes: Error, Equatable, Sendable {
  @inlinable public init() {}
}

/// Reads what ``ByteWriter`` writes. Every read is bounded by the bytes that are there.
public struct ByteReader: Sendable {
  @usableFromInline let bytes: [UInt8]
  @usableFromInline var position = 0

  public init(_ bytes: [UInt8]) { self.bytes = bytes }

  @inlinable public var remaining: Int { bytes.count - position }

  @inlinable
  public mutating func read<Value: FixedWidthInteger>(_ type: Value.Type = Value.self) throws(MalformedBytes) -> Value {
    let size = Value.bitWidth / 8
    guard remaining >= size else { throw MalformedBytes() }
    defer { position += size }
    return bytes.withUnsafeBytes { Value(bigEndian: $0.loadUnaligned(fromByteOffset: position, as: Value.self)) }
  }

  public mutating func read(fixed count: Int) throws(MalformedBytes) -> [UInt8] {
    guard count >= 0, remaining >= count else { throw MalformedBytes() }
    defer { position += count }
    return Array(bytes[position..<(position + count)])
  }

  public mutating func skip(_ count: Int) throws(MalformedBytes) {
    guard count >= 0, remaining >= count else { throw MalformedBytes() }
    position += count
  }

  /// Throws when the stated length is above `limit`.
  public mutating func read(countedUpTo limit: Int) throws(MalformedBytes) -> [UInt8] {
    let count = try read(UInt32.self)
    guard count <= limit else { throw MalformedBytes() }
    return try read(fixed: Int(count))
  }

  /// Throws unless everything was read.
  public func finish() throws(MalformedBytes) {
    guard remaining == 0 else { throw MalformedBytes() }
  }
}

extension FixedWidthInteger {
  public var bigEndianBytes: [UInt8] { withUnsafeBytes(of: bigEndian) { Array($0) } }
}
