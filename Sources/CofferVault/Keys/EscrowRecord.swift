internal import CofferCrypto
internal import CofferKeys
internal import CofferSystem

/// What the key store keeps for a company's escrow key, sealed for this device.
///
/// None of it opens the vault: with the clearing key alone there is nothing to open, and what the company's key has cleared
/// is wrapped under a code that is on no device.
struct EscrowRecord: Equatable {
  /// One half of an exchange with the holder of the escrow key. It belongs to one keybag: whatever changes that, a new
  /// passcode first of all, ends the exchange with everything that was made for it, before anything else is stored.
  struct Exchange: Equatable {
    /// SHA-256 of the keybag.
    let keybagDigest: [UInt8]
    /// Whom the vault belongs to, as the caller has it.
    let context: [UInt8]
    /// The company's key, which the keybag's slot is for.
    let recipient: HybridPublicKey
    let clearing: StoredHybridKey
    /// Tells whether somebody had the master key who signed a clearing.
    let proof: VerifyingKey
    /// By the master key's holder, over the offer.
    let signature: [UInt8]
    /// SHA-256 of the clearings that were taken: none is taken twice.
    var taken: [[UInt8]] = []
    var pending: Pending?
  }

  /// A clearing that waits for the person.
  struct Pending: Equatable {
    /// The master key, wrapped under the key of a code.
    let wrapped: [UInt8]
    let moment: BootMoment
    /// Seconds since 1970.
    let time: Int64
  }

  var exchange: Exchange?
  /// SHA-256 of the clearings that exchanges took which have ended, the newest last: for the answer to their orders.
  private(set) var ended: [[UInt8]] = []
  /// What opened the vault without its passcode, or made ready for that, and is in no audit yet, the oldest first.
  var uses: [EscrowUse] = []

  /// Clearings that one exchange takes, and uses that wait to be recorded.
  static let takenLimit = 16
  static let useLimit = 64
  static let contextLimit = 1024
  private static let limit = 16 << 10

  /// `exchange`, where it was made for the keybag with these bytes.
  func exchange(of keybag: [UInt8]) -> Exchange? {
    exchange.flatMap { equalInConstantTime($0.keybagDigest, Digest.sha256(keybag)) ? $0 : nil }
  }

  init() {}

  /// What is kept; an empty record where there is none, or none that this device has sealed: whoever can change it could
  /// take it away, and the next passcode makes it anew.
  init(in keyStore: any KeyStore, for vault: VaultID, on device: DeviceKeys) throws {
    self = try Self.present(in: keyStore, for: vault, on: device) ?? EscrowRecord()
  }

  /// As above; nil in place of an empty record.
  static func present(in keyStore: any KeyStore, for vault: VaultID, on device: DeviceKeys) throws -> EscrowRecord? {
    guard let sealed = try keyStore.read(.escrow, of: vault)?.withUnsafeBytes({ Array($0) }),
      var bytes = try? Sealing.open(sealed, key: device.escrow, authenticating: vault.bytes)
    else { return nil }
    defer { bytes.withUnsafeMutableBytes { overwrite($0) } }
    return try? EscrowRecord(decoding: bytes)
  }

  /// Ends the exchange with everything that was made for it.
  mutating func endExchange() {
    ended = (ended + (exchange?.taken ?? [])).suffix(Self.takenLimit)
    exchange = nil
  }

  /// Whether a clearing with this SHA-256 was taken, in whatever exchange.
  func hasTaken(_ digest: [UInt8]) -> Bool { ended.contains(digest) || exchange?.taken.contains(digest) == true }

  /// Notes a use. Where none is recorded for long, the oldest go.
  mutating func note(_ use: EscrowUse) {
    if uses.count >= Self.useLimit { uses.removeFirst() }
    uses.append(use)
  }

  func store(in keyStore: any KeyStore, for vault: VaultID, on device: DeviceKeys) throws {
    var bytes = encoded
    defer { bytes.withUnsafeMutableBytes { overwrite($0) } }
    let sealed = try Sealing.seal(bytes, key: device.escrow, authenticating: vault.bytes)
    try keyStore.write(sealed.withUnsafeBytes { SecretBytes(copying: $0) }, as: .escrow, of: vault)
  }

  /// `u8 0 ‖ u8 uses ‖ uses × (u8 means ‖ i64 time) ‖ u8 exchange`, and of an exchange `keybag's digest (32) ‖
  /// bytes(context) ‖ recipient (32) ‖ clearing key (32) ‖ proof key (32) ‖ signature (64) ‖ u8 taken ‖ taken × digest (32)
  /// ‖ u8 pending`, and of what is pending `wrapped (40) ‖ boot (16) ‖ u64 seconds ‖ i64 time`. Behind all
  /// that `u8 ended ‖ ended × digest (32)`, where there are any.
  var encoded: [UInt8] {
    var writer = ByteWriter()
    write(&writer)
    guard !ended.isEmpty else { return writer.bytes }
    writer.write(UInt8(ended.count))
    for digest in ended { writer.write(fixed: digest) }
    return writer.bytes
  }

  private func write(_ writer: inout ByteWriter) {
    writer.write(UInt8(0))
    writer.write(UInt8(uses.count))
    for use in uses {
      writer.write(use.means.rawValue)
      writer.write(use.time)
    }
    writer.write(UInt8(exchange == nil ? 0 : 1))
    guard let exchange else { return }
    writer.write(fixed: exchange.keybagDigest)
    writer.write(counted: exchange.context)
    writer.write(fixed: exchange.recipient.bytes)
    exchange.clearing.key.secretBytes.withUnsafeBytes { writer.write(fixed: $0) }
    writer.write(fixed: exchange.proof.bytes)
    writer.write(fixed: exchange.signature)
    writer.write(UInt8(exchange.taken.count))
    for digest in exchange.taken { writer.write(fixed: digest) }
    writer.write(UInt8(exchange.pending == nil ? 0 : 1))
    guard let pending = exchange.pending else { return }
    writer.write(fixed: pending.wrapped)
    writer.write(fixed: pending.moment.boot)
    writer.write(pending.moment.seconds)
    writer.write(pending.time)
  }

  init(decoding bytes: [UInt8]) throws {
    guard bytes.count <= Self.limit else { throw MalformedBytes() }
    var reader = ByteReader(bytes)
    guard try reader.read(UInt8.self) == 0 else { throw MalformedBytes() }
    let useCount = Int(try reader.read(UInt8.self))
    guard useCount <= Self.useLimit else { throw MalformedBytes() }
    for _ in 0..<useCount {
      guard let means = EscrowUse.Means(rawValue: try reader.read()) else { throw MalformedBytes() }
      uses.append(EscrowUse(means: means, time: try reader.read()))
    }
    if try Self.flag(&reader) { exchange = try Exchange(reading: &reader) }
    guard reader.remaining > 0 else { return }
    ended = try Self.digests(&reader)
    guard !ended.isEmpty else { throw MalformedBytes() }
    try reader.finish()
  }

  fileprivate static func digests(_ reader: inout ByteReader) throws -> [[UInt8]] {
    let count = Int(try reader.read(UInt8.self))
    guard count <= takenLimit else { throw MalformedBytes() }
    return try (0..<count).map { _ in try reader.read(fixed: Digest.byteCount) }
  }

  fileprivate static func flag(_ reader: inout ByteReader) throws -> Bool {
    switch try reader.read(UInt8.self) {
    case 0: false
    case 1: true
    default: throw MalformedBytes()
    }
  }
}

extension EscrowRecord.Exchange {
  fileprivate init(reading reader: inout ByteReader) throws {
    keybagDigest = try reader.read(fixed: Digest.byteCount)
    context = try reader.read(countedUpTo: EscrowRecord.contextLimit)
    recipient = try HybridPublicKey(bytes: reader.read(fixed: HybridPublicKey.byteCount))
    var secret = try reader.read(fixed: HybridKey.byteCount)
    defer { secret.withUnsafeMutableBytes { overwrite($0) } }
    clearing = StoredHybridKey(key: try HybridKey(secret.withUnsafeBytes { SecretBytes(copying: $0) }))
    proof = try VerifyingKey(bytes: reader.read(fixed: VerifyingKey.byteCount))
    signature = try reader.read(fixed: EscrowOffer.signatureByteCount)
    taken = try EscrowRecord.digests(&reader)
    if try EscrowRecord.flag(&reader) { pending = try EscrowRecord.Pending(reading: &reader) }
  }
}

extension EscrowRecord.Pending {
  /// Seconds for which a clearing waits for the person.
  static let lifetime: UInt64 = 60 * 60

  fileprivate init(reading reader: inout ByteReader) throws {
    wrapped = try reader.read(fixed: SecretKey.wrappedByteCount)
    moment = BootMoment(boot: try reader.read(fixed: BootMoment.bootByteCount), seconds: try reader.read())
    time = try reader.read()
  }

  /// Whether its time is over: by the clock that nobody sets, and where the machine was started since by the other.
  func isOver(at time: any TimeSource) -> Bool {
    let present = time.sinceBoot()
    if present.boot == moment.boot {
      return present.seconds < moment.seconds || present.seconds - moment.seconds >= Self.lifetime
    }
    let (passed, overflow) = time.now().seconds.subtractingReportingOverflow(self.time)
    return overflow || passed < 0 || UInt64(passed) >= Self.lifetime
  }
}

/// A private key that compares by its public half.
struct StoredHybridKey: Equatable {
  let key: HybridKey

  static func == (left: Self, right: Self) -> Bool { left.key.publicKey == right.key.publicKey }
}

/// A use of a company's escrow key on this device, which opened the vault or let it be opened.
public struct EscrowUse: Sendable, Hashable {
  public enum Means: UInt8, Sendable {
    /// The private key itself was here.
    case escrowKey = 1
    /// The company cleared the passcode from afar, and somebody had the code.
    case clearing = 2
    /// The company cleared the passcode from afar: from then on the code opens the vault, for an hour.
    case cleared = 3
  }

  public let means: Means
  /// Seconds since 1970, by the device's clock.
  public let time: Int64
}
