internal import CofferCrypto
internal import CofferFiles
internal import CofferSystem
internal import CofferVault
internal import Crypto
internal import CryptoExtras
internal import Foundation

/// RNCryptor's format in and out of a vault, beside the two things that the format is made of, each alone: CBC and HMAC
/// of the same library, on a buffer that stays in the processor's cache. With the peak memory above the open vault at
/// rest.
struct RNCryptorSpeed {
  private static let step = 1 << 20
  /// What the library is given in one call; it allocates as much, and this is where that costs it least.
  private static let callByteCount = 64 << 10

  private let size: Int
  private let secret: RNCryptorSecret
  private let source: OwnedDescriptor
  private let place: BenchVault
  private let vault: Vault
  private let buffer = Buffer(256 << 10)
  private let key = SymmetricKey(size: .bits256)
  private var baseline: Int?

  static func measure(_ options: inout Options) throws {
    let size = try options.number("size", 1 << 30) / step * step
    let rounds = try options.number("rounds", 5)
    let place = try BenchVault(options)
    // Made, closed and opened again: what making it took is not the baseline.
    try place.create().close()
    let vault = try place.open()
    let source = try PlainFile("source", in: place)
    let secret = try RNCryptorSecret.keys(RNCryptorKeys(file: SecretBytes(count: 64) { Randomness.fill($0) }))
    var speed = RNCryptorSpeed(
      size: size, secret: secret, source: source.descriptor, place: place, vault: vault)
    speed.baseline = ResidentMemory.reset()
    try speed.makeSource()
    let subjects = [
      speed.decryption, speed.encryption, speed.authentication, speed.opening, speed.sealing, speed.transfer,
    ]
    // The first round warms up.
    for round in 0...rounds {
      for subject in subjects.rotated(by: round) {
        for result in try subject() where round > 0 {
          try Line(
            measurement: "rncryptor", subject: result.subject, round: round, parameters: ["size": size],
            seconds: result.seconds, bytes: size, memory: result.memory
          ).print()
        }
      }
    }
    try vault.close()
    try source.remove()
  }

  private struct Result {
    let subject: String
    let seconds: Double
    var memory: Int?
  }

  private init(size: Int, secret: RNCryptorSecret, source: OwnedDescriptor, place: BenchVault, vault: Vault) {
    self.size = size
    self.secret = secret
    self.source = source
    self.place = place
    self.vault = vault
  }

  private func makeSource() throws {
    var sealer = try RNCryptorSealer(secret: secret)
    var position: UInt64 = 0
    func write(_ bytes: UnsafeRawBufferPointer) throws {
      try source.writeAll(bytes, at: position)
      position += UInt64(bytes.count)
    }
    try sealer.header.withUnsafeBytes(write)
    let portion = Self.callByteCount
    let buffer = Buffer(portion + RNCryptorSealer.paddingByteCount)
    for done in stride(from: 0, to: size, by: portion) {
      let sealed = sealer.seal(buffer.bytes, count: portion, isLast: done + portion == size)
      try write(UnsafeRawBufferPointer(rebasing: buffer.bytes[..<sealed]))
    }
    try sealer.tag().withUnsafeBytes(write)
  }

  // The peers, each alone.

  private func decryption() throws -> [Result] {
    let call = UnsafeRawBufferPointer(rebasing: buffer.readable[..<Self.callByteCount])
    return try calls("CBC decryption") {
      _ = try AES._CBC.decrypt(call, using: key, iv: AES._CBC.IV(), noPadding: true)
    }
  }

  private func encryption() throws -> [Result] {
    let call = UnsafeRawBufferPointer(rebasing: buffer.readable[..<Self.callByteCount])
    return try calls("CBC encryption") {
      _ = try AES._CBC.encrypt(call, using: key, iv: AES._CBC.IV(), noPadding: true)
    }
  }

  private func authentication() -> [Result] {
    let call = UnsafeRawBufferPointer(rebasing: buffer.readable[..<Self.callByteCount])
    var hash = HMAC<SHA256>(key: key)
    let results = calls("HMAC") { hash.update(data: call) }
    _ = hash.finalize()
    return results
  }

  private func calls(_ subject: String, _ body: () throws -> Void) rethrows -> [Result] {
    let count = size / Self.callByteCount
    let time = try seconds { for _ in 0..<count { try body() } }
    return [Result(subject: subject, seconds: time)]
  }

  // Ours.

  private func opening() throws -> [Result] {
    let time = try seconds {
      let opener = try RNCryptorOpener(secret: secret)
      var position: UInt64 = 0
      var opened = 0
      while true {
        let portion = try opener.next(into: buffer.bytes) { part in
          let count = try source.readFully(at: position, into: part)
          position += UInt64(count)
          return count
        }
        if portion.byteCount == 0 { break }
        opened += try portion.open(buffer.bytes)
      }
      guard opened == size else { throw Options.Invalid(message: "\(opened) bytes were opened") }
    }
    return [Result(subject: "opener", seconds: time)]
  }

  private func sealing() throws -> [Result] {
    var sealer = try RNCryptorSealer(secret: secret)
    let time = seconds {
      for _ in 0..<(size / Self.callByteCount) {
        _ = sealer.seal(buffer.bytes, count: Self.callByteCount, isLast: false)
      }
    }
    return [Result(subject: "sealer", seconds: time)]
  }

  private func transfer() throws -> [Result] {
    let path = try VaultPath("imported")
    // A descriptor of its own, which begins at the start.
    let input = try FileSystem().open(place.folder + "/source", .readOnly)
    _ = ResidentMemory.reset()
    let imported = try seconds {
      try vault.importFile(
        ImportSource(
          descriptor: input, decoder: RNCryptorOpener(secret: secret), permissions: 0o600, modified: nil), to: path)
      try vault.commit()
    }
    let importPeak = ResidentMemory.peak(above: baseline)
    let output = try PlainFile("exported", in: place)
    _ = ResidentMemory.reset()
    let exported = try seconds {
      try vault.snapshot(of: path).exportRNCryptor(to: output.descriptor, secret: secret)
      try output.descriptor.syncData()
    }
    let exportPeak = ResidentMemory.peak(above: baseline)
    try output.remove()
    try vault.remove(path)
    try vault.commit()
    return [
      Result(subject: "import", seconds: imported, memory: importPeak),
      Result(subject: "export", seconds: exported, memory: exportPeak),
    ]
  }
}
