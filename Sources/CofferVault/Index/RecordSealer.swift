internal import CofferCrypto
internal import CofferKeys
internal import CofferSystem
internal import Synchronization

/// Seals and opens row values: salt index (4) ‖ nonce (12) ‖ ciphertext ‖ tag (16), bound to vault, kind and row key.
///
/// Each opening of the vault that writes draws a salt, and seals under HKDF(metadata key, salt): so the number of values
/// that random nonces allow under one key is never a bound on the vault's life.
final class RecordSealer: Sendable {
  static let saltByteCount = 32
  private let metadataKey: SecretKey
  private let context: [UInt8]
  private let keys = Mutex<[UInt32: SecretKey]>([:])

  init(metadataKey: SecretKey, vault: VaultID) {
    self.metadataKey = metadataKey
    context = Array("coffer record \(VaultFormat.version)".utf8) + vault.bytes
  }

  /// The key of a salt, where it was derived lately.
  func key(_ index: UInt32) -> RecordKey? {
    keys.withLock { $0[index] }.map { RecordKey(salt: index, key: $0, context: context) }
  }

  /// The key of a salt as the index has it, kept for the next record. One that is known stays: a row that somebody put there for
  /// a salt that this opening has drawn means nothing.
  func key(_ index: UInt32, stored salt: [UInt8]?) throws -> RecordKey {
    let key = try derive(salt)
    return RecordKey(
      salt: index, key: keys.withLock { Self.keep(key, index, in: &$0, replacing: false) }, context: context)
  }

  /// The key of a salt that was just drawn.
  func key(_ index: UInt32, drawn salt: [UInt8]) throws -> RecordKey {
    let key = try derive(salt)
    return RecordKey(
      salt: index, key: keys.withLock { Self.keep(key, index, in: &$0, replacing: true) }, context: context)
  }

  private func derive(_ salt: [UInt8]?) throws -> SecretKey {
    guard let salt, salt.count == Self.saltByteCount else { throw VaultError.damaged(what: "a salt") }
    return metadataKey.derived("records", context: salt)
  }

  private static func keep(
    _ key: SecretKey, _ index: UInt32, in keys: inout [UInt32: SecretKey], replacing: Bool
  ) -> SecretKey {
    if !replacing, let known = keys[index] { return known }
    // Old openings' keys are cheap to derive again; a vault of many openings must not hold them all.
    if keys.count >= 256 { keys.removeAll() }
    keys[index] = key
    return key
  }

  func forget(_ index: UInt32) { keys.withLock { $0[index] = nil } }

  /// The salt that a stored value was sealed with.
  static func saltIndex(of value: UnsafeRawBufferPointer) throws -> UInt32 {
    guard value.count >= 4 else { throw MalformedBytes() }
    return UInt32(bigEndian: value.loadUnaligned(as: UInt32.self))
  }
}

/// The key of one salt.
struct RecordKey: Sendable {
  fileprivate let salt: UInt32
  fileprivate let key: SecretKey
  fileprivate let context: [UInt8]

  func seal(_ plaintext: [UInt8], kind: RecordKind, row: UnsafeRawBufferPointer) throws -> [UInt8] {
    try Sealing.seal(plaintext, key: key, authenticating: context(kind, row), after: salt.bigEndianBytes)
  }

  func open(_ value: UnsafeRawBufferPointer, kind: RecordKind, row: UnsafeRawBufferPointer) throws -> [UInt8] {
    try Sealing.open(UnsafeRawBufferPointer(rebasing: value.dropFirst(4)), key: key, authenticating: context(kind, row))
  }

  private func context(_ kind: RecordKind, _ row: UnsafeRawBufferPointer) -> [UInt8] {
    var bytes: [UInt8] = []
    bytes.reserveCapacity(context.count + 1 + row.count)
    bytes += context
    bytes.append(kind.rawValue)
    bytes.append(contentsOf: row)
    return bytes
  }
}
