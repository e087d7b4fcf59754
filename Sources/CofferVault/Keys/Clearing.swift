internal import CofferCrypto
internal import CofferKeys
internal import CofferSystem

/// A passcode's clearing: a vault's master key, wrapped under the key of a code that only a person has, and signed by
/// somebody who had the master key.
struct Clearing {
  /// What it is for: one key of one device for one vault.
  struct Binding {
    let vault: VaultID
    let context: [UInt8]
    let clearingKey: HybridPublicKey

    var bytes: [UInt8] { EscrowProof.message("coffer clearing 0", [vault.bytes, context, clearingKey.bytes]) }
  }

  private let binding: Binding
  /// The master key under ``codeKey(_:_:)``.
  let wrapped: [UInt8]
  /// Seconds since 1970: no device takes it later, by its clock. What is lost on its way ends by itself.
  let notAfter: Int64
  private let signature: [UInt8]

  /// Seconds for which one is good.
  static let lifetime: Int64 = 7 * 86_400

  private static let version: UInt8 = 0
  private static let info = Array("coffer clearing 0".utf8)
  private static let contentByteCount = SecretKey.wrappedByteCount + 8 + EscrowOffer.signatureByteCount
  /// Bytes of a sealed one.
  static let byteCount =
    1 + HybridBox.encapsulatedKeyByteCount + HybridBox.ciphertextByteCount + Sealing.overhead + contentByteCount

  init(
    wrapping master: SecretKey, under code: RecoveryKey, in binding: Binding, notAfter: Int64, proof: EscrowProof
  ) throws {
    self.binding = binding
    self.notAfter = notAfter
    wrapped = try master.wrapped(under: Self.codeKey(code, binding))
    signature = proof.key.signature(for: Self.message(binding, wrapped, notAfter))
  }

  /// `u8 0 ‖ encapsulated key (32) ‖ sealed key (48) ‖ AES-256-GCM under that key of (wrapped (40) ‖ i64 end ‖
  /// signature (64))`: HPKE to the clearing key, which carries a key of its own.
  func sealed() throws -> [UInt8] {
    let key = SecretKey()
    let box = try binding.clearingKey.seal(key, info: Self.info, authenticating: binding.bytes)
    return [Self.version] + box.encapsulatedKey + box.ciphertext
      + (try Sealing.seal(
        wrapped + notAfter.bigEndianBytes + signature, key: key, authenticating: binding.bytes))
  }

  /// Throws `notGenuine` unless it was made for `binding`, whose private half `key` is, by somebody who had the master key
  /// that `proof` stands for.
  init(opening sealed: [UInt8], with key: HybridKey, in binding: Binding, proof: VerifyingKey) throws(ClearingFault) {
    guard sealed.count == Self.byteCount, sealed[0] == Self.version else { throw .notGenuine }
    let (encapsulated, ciphertext) = (HybridBox.encapsulatedKeyByteCount, HybridBox.ciphertextByteCount)
    let box = HybridBox(
      encapsulatedKey: Array(sealed[1..<1 + encapsulated]),
      ciphertext: Array(sealed[(1 + encapsulated)..<(1 + encapsulated + ciphertext)]))
    guard let transport = try? key.open(box, info: Self.info, authenticating: binding.bytes),
      let content = try? Sealing.open(
        Array(sealed[(1 + encapsulated + ciphertext)...]), key: transport, authenticating: binding.bytes),
      content.count == Self.contentByteCount
    else { throw .notGenuine }
    var reader = ByteReader(content)
    guard let wrapped = try? reader.read(fixed: SecretKey.wrappedByteCount),
      let notAfter = try? reader.read(Int64.self),
      let signature = try? reader.read(fixed: EscrowOffer.signatureByteCount),
      proof.isValid(signature, for: Self.message(binding, wrapped, notAfter))
    else { throw .notGenuine }
    (self.binding, self.wrapped, self.notAfter, self.signature) = (binding, wrapped, notAfter, signature)
  }

  static func codeKey(_ code: RecoveryKey, _ binding: Binding) -> SecretKey {
    code.key("clearing code", context: binding.bytes)
  }

  private static func message(_ binding: Binding, _ wrapped: [UInt8], _ notAfter: Int64) -> [UInt8] {
    EscrowProof.message("coffer cleared 0", [binding.bytes, wrapped, notAfter.bigEndianBytes])
  }
}

/// Why a passcode is not cleared.
public enum ClearingFault: Error, Hashable, Sendable, CustomStringConvertible {
  /// The device has handed in nothing that one could be made for, or not since the keybag was changed.
  case noOffer
  /// The vault is sealed to another key than the one that the order goes by.
  case otherKey
  /// It was made for another device, vault, exchange or passcode, or by nobody who had the key, or was altered.
  case notGenuine
  /// It was taken before.
  case taken
  /// So many were taken that no further one is.
  case tooMany
  /// Nothing was cleared here, or a new passcode was set since.
  case nothingPending
  /// Its time was over before it came here.
  case expired
  /// The person's time is over.
  case over
  case wrongCode

  public var description: String {
    switch self {
    case .noOffer:
      "the device has no clearing key: its company's key does not open the vault, or its keys were changed and the vault was "
        + "not unlocked with the passcode since"
    case .otherKey: "the vault is not sealed to the company's present escrow key"
    case .notGenuine:
      "the clearing was not made for this device as it is now: for another device or vault, before its passcode was set, not "
        + "with the escrow key, or it was altered"
    case .taken: "the clearing was taken before"
    case .tooMany: "too many clearings were taken; unlock the vault with its passcode first"
    case .nothingPending: "the company has not cleared this vault's passcode, or a new one was set since"
    case .expired: "the clearing was made too long ago; ask the company for another one"
    case .over: "the time for a new passcode is over; ask the company to clear the passcode once more"
    case .wrongCode: "the code is well written, but not the one of this clearing"
    }
  }
}
