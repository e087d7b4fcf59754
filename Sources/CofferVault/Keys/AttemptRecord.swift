internal import CofferCrypto
internal import CofferSystem

/// How many passcodes were tried in vain, and when the last one was; kept in the key store, authenticated.
///
/// A try is pending from before its derivation until its outcome is stored. Both kinds delay the next one, but only a try
/// that was proved wrong brings a vault nearer to its end: one whose process was ended may have been the right one.
///
/// Of fixed length and shorter than a sector, so that a full disk need not keep it from being written.
struct AttemptRecord: Equatable {
  /// Tries since the last right one that were proved wrong.
  var failureCount: UInt16 = 0
  /// Tries since the last right one whose outcome nobody knows: under way, or ended before it was stored.
  var pendingCount: UInt16 = 0
  /// From when the delay counts.
  var start = BootMoment(boot: [UInt8](repeating: 0, count: BootMoment.bootByteCount), seconds: 0)
  /// The last wrong passcodes, by ``DeviceKeys/mark(_:)``: the same one again does not count.
  var marks: [[UInt8]] = []

  static let markLimit = 8
  static let byteCount = 1 + 2 + 2 + BootMoment.bootByteCount + 8 + 1 + markLimit * KeyedHash.byteCount + 32

  /// What the delay goes by.
  var tryCount: UInt32 { UInt32(failureCount) + UInt32(pendingCount) }

  /// Seconds until a passcode may be tried; 0 where one may be tried now.
  ///
  /// After a restart, and on a clock that went back, the whole delay lies ahead: see ``restarted(at:)``.
  func remaining(at moment: BootMoment) -> UInt64 {
    let delay = PasscodeDelays.seconds(after: tryCount)
    guard moment.boot == start.boot, moment.seconds >= start.seconds else { return delay }
    let passed = moment.seconds - start.seconds
    return passed >= delay ? 0 : delay - passed
  }

  /// The record with the whole delay ahead, where time cannot be counted from when it began; nil where it can.
  func restarted(at moment: BootMoment) -> AttemptRecord? {
    let isCountable = moment.boot == start.boot && moment.seconds >= start.seconds
    guard !isCountable, PasscodeDelays.seconds(after: tryCount) > 0 else { return nil }
    var record = self
    record.start = moment
    return record
  }

  /// A try begins, now.
  mutating func begin(at moment: BootMoment) {
    pendingCount += pendingCount < .max ? 1 : 0
    start = moment
  }

  /// The outcome of a pending try is known. One that was right meanwhile has set all to zero.
  mutating func settle(isProvedWrong: Bool) {
    pendingCount -= pendingCount > 0 ? 1 : 0
    if isProvedWrong { failureCount += failureCount < .max ? 1 : 0 }
  }

  mutating func remember(_ mark: [UInt8]) {
    marks.append(mark)
    if marks.count > Self.markLimit { marks.removeFirst() }
  }

  /// `u8 0 ‖ u16 pending ‖ u16 failures ‖ boot (16) ‖ u64 seconds ‖ u8 marks ‖ 8 × mark (32) ‖ HMAC-SHA256 of what is before it (32)`.
  func encoded(key: SecretKey) -> [UInt8] {
    var writer = ByteWriter()
    writer.write(UInt8(0))
    writer.write(pendingCount)
    writer.write(failureCount)
    writer.write(fixed: start.boot)
    writer.write(start.seconds)
    writer.write(UInt8(marks.count))
    for mark in marks { writer.write(fixed: mark) }
    for _ in marks.count..<Self.markLimit { writer.write(fixed: [UInt8](repeating: 0, count: KeyedHash.byteCount)) }
    writer.write(fixed: MessageAuthentication.code(for: writer.bytes, key: key))
    return writer.bytes
  }

  /// As the key store takes it.
  func secretBytes(key: SecretKey) -> SecretBytes {
    encoded(key: key).withUnsafeBytes { SecretBytes(copying: $0) }
  }

  init() {}

  init(decoding bytes: [UInt8], key: SecretKey) throws(MalformedBytes) {
    guard bytes.count == Self.byteCount else { throw MalformedBytes() }
    guard MessageAuthentication.isValid(Array(bytes.suffix(32)), for: Array(bytes.dropLast(32)), key: key) else {
      throw MalformedBytes()
    }
    var reader = ByteReader(bytes)
    guard try reader.read(UInt8.self) == 0 else { throw MalformedBytes() }
    pendingCount = try reader.read()
    failureCount = try reader.read()
    let boot = try reader.read(fixed: BootMoment.bootByteCount)
    start = BootMoment(boot: boot, seconds: try reader.read())
    let count = Int(try reader.read(UInt8.self))
    guard count <= Self.markLimit else { throw MalformedBytes() }
    for _ in 0..<count { marks.append(try reader.read(fixed: KeyedHash.byteCount)) }
  }
}
