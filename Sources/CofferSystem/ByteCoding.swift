/// Writes a binary record: integers big-endian, byte strings behind their length.
public struct ByteWriter: Sendable {
  public private(set) var bytes: [UInt8] = []

  public init() {}

  public mutating func write(_ value: some FixedWidthInteger) {
    withUnsafeBytes(of: value.bigEndian) { bytes.append(contentsOf: $0) }
  }
  /// Bytes whose count the format fixes.
  public mutating func write(fixed value: some Sequence<UInt8>) { bytes.append(contentsOf: value) }
  /// A byte string of at most 2³²-1 bytes behind its length in 4 bytes.
  public mutating func write(counted value: [UInt8]) {
    write(UInt32(value.count))
    bytes.append(contentsOf: value)
  }
}

/// What a binary record's reader refuses: it ends too soon, or holds a value outside its range.
public struct MalformedBytes: Error, Equatable, Sendable {
  public init() {}
}

/// Reads what ``ByteWriter`` writes. Every read is bounded by the bytes that are there.
public struct ByteReader: Sendable {
  private let bytes: [UInt8]
  private var position = 0

  public init(_ bytes: [UInt8]) { self.bytes = bytes }

  public var remaining: Int { bytes.count - position }

  public mutating func read<Value: FixedWidthInteger>(_ type: Value.Type = Value.self) throws(MalformedBytes) -> Value {
    let size = Value.bitWidth / 8
    guard remaining >= size else { throw MalformedBytes() }
    var value: Value = 0
    for index in position..<(position + size) { value = value << 8 | Value(truncatingIfNeeded: bytes[index]) }
    position += size
    return value
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
