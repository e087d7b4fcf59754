internal import CofferCrypto
internal import CofferKeys
internal import CofferSystem
internal import Synchronization

/// Seals and opens row values: salt index (4) ‖ nonce (12) ‖ ciphertext ‖ tag (16), bound to vault, kind and row key.
///
/// Each opening of the vault that writes draws a salt, and seals under HKDF(metadata key, salt), but for a root that it brings from an
/// earlier opening's journal to SQLite, or to a backup: so the number of values
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

  /// The key of a salt as the index has it, kept for the next record.
  func key(_ index: UInt32, stored salt: [UInt8]?) throws -> RecordKey {
    guard let salt, salt.count == Self.saltByteCount else { throw VaultError.damaged(what: "a salt") }
    let key = key(index, drawn: salt)
    // Who reads may have found what lay in its place before this opening's own was stored.
    keep(key, unlessKnown: true)
    return key
  }

  /// The key of a salt that was just drawn. It is kept once the salt is stored: until then somebody else's may lie in its place.
  func key(_ index: UInt32, drawn salt: [UInt8]) -> RecordKey {
    RecordKey(salt: index, key: metadataKey.derived("records", context: salt), context: context)
  }

  func keep(_ key: RecordKey, unlessKnown: Bool = false) {
    keys.withLock { keys in
      if unlessKnown, keys[key.salt] != nil { return }
      // Old openings' keys are cheap to derive again; a vault of many openings must not hold them all.
      if keys.count >= 256 { keys.removeAll() }
      keys[key.salt] = key.key
    }
  }

  /// The salt that a stored value was sealed with.
  static func saltIndex(of value: UnsafeRawBufferPointer) throws -> UInt32 {
    guard value.count >= 4 else { throw MalformedBytes() }
    return UInt32(bigEndian: value.loadUnaligned(as: UInt32.self))
  }
}

/// The key of one salt.
struct RecordKey: Sendable {
  let salt: UInt32
  fileprivate let key: SecretKey
  fileprivate let context: [UInt8]

  func seal(_ plaintext: [UInt8], kind: RecordKind, row: UnsafeRawBufferPointer) throws -> [UInt8] {
    try Sealing.seal(plaintext, key: key, authenticating: context(kind, row), after: salt.bigEndianBytes)
  }

  func seal(_ root: RootRecord) throws -> [UInt8] {
    try RootRecord.row.withUnsafeBytes { try seal(root.encoded(), kind: .root, row: $0) }
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
