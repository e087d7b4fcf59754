internal import CofferCrypto
internal import CofferKeys
internal import CofferSystem

/// Seals and opens row values: salt index (4) ‖ nonce (12) ‖ ciphertext ‖ tag (16), bound to vault, kind and row key.
///
/// Each opening of the vault that writes draws a salt, and seals under HKDF(metadata key, salt): so the number of values
/// that random nonces allow under one key is never a bound on the vault's life.
struct RecordSealer {
  static let saltByteCount = 32
  private let metadataKey: SecretKey
  private let vault: VaultID
  private var keys: [UInt32: SecretKey] = [:]

  init(metadataKey: SecretKey, vault: VaultID) {
    self.metadataKey = metadataKey
    self.vault = vault
  }

  /// The key of a salt that `load` finds in the index; kept for the next record.
  mutating func key(_ index: UInt32, load: () throws -> [UInt8]?) throws -> SecretKey {
    if let key = keys[index] { return key }
    guard let salt = try load(), salt.count == Self.saltByteCount else { throw VaultError.damaged(what: "a salt") }
    let key = metadataKey.derived("records", context: salt)
    // Old openings' keys are cheap to derive again; a vault of many openings must not hold them all.
    if keys.count >= 256 { keys.removeAll() }
    keys[index] = key
    return key
  }

  func seal(_ plaintext: [UInt8], salt index: UInt32, key: SecretKey, kind: RecordKind, row: [UInt8]) throws -> [UInt8]
  {
    index.bigEndianBytes + (try Sealing.seal(plaintext, key: key, authenticating: context(kind, row)))
  }

  func open(_ value: [UInt8], key: SecretKey, kind: RecordKind, row: [UInt8]) throws -> [UInt8] {
    try Sealing.open(Array(value.dropFirst(4)), key: key, authenticating: context(kind, row))
  }

  /// The salt that a stored value was sealed with.
  static func saltIndex(of value: [UInt8]) throws -> UInt32 {
    var reader = ByteReader(value)
    return try reader.read(UInt32.self)
  }

  private func context(_ kind: RecordKind, _ row: [UInt8]) -> [UInt8] {
    Array("coffer record \(VaultFormat.version)".utf8) + vault.bytes + [kind.rawValue] + row
  }
}
