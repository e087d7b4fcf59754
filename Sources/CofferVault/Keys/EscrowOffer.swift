public import CofferCrypto
public import CofferKeys
internal import CofferSystem

/// What a device hands to its company, so that whoever holds the escrow key can clear the passcode from afar: the keybag's
/// slot, and a key of the device that a clearing is sealed to.
///
/// Only the holder of the escrow key can tell whether it is genuine: it is signed with a key that follows from the vault's
/// master key. So a server that puts its own key in the place of the device's gets no clearing.
public struct EscrowOffer: Sendable, Hashable {
  public static let signatureByteCount = 64

  public let vault: VaultID
  /// Whom the vault belongs to; the same bytes on the device and at the escrow key.
  public let context: [UInt8]
  /// The company's key.
  public let escrowKey: HybridPublicKey
  /// The master key, sealed to it: as in the keybag.
  public let slot: HybridBox
  /// The device's key of this exchange.
  public let clearingKey: HybridPublicKey
  /// 64 bytes.
  public let signature: [UInt8]

  /// Throws `damaged` where a length is not right.
  public init(
    vault: VaultID, context: [UInt8], escrowKey: HybridPublicKey, slot: HybridBox, clearingKey: HybridPublicKey,
    signature: [UInt8]
  ) throws(VaultError) {
    guard context.count <= EscrowRecord.contextLimit, signature.count == Self.signatureByteCount,
      slot.encapsulatedKey.count == HybridBox.encapsulatedKeyByteCount,
      slot.ciphertext.count == HybridBox.ciphertextByteCount
    else { throw .damaged(what: Self.name) }
    self.vault = vault
    self.context = context
    self.escrowKey = escrowKey
    self.slot = slot
    self.clearingKey = clearingKey
    self.signature = signature
  }

  private static let name = "what the device handed in for the escrow key"

  /// What is signed: every part behind its length.
  static func message(
    _ vault: VaultID, _ context: [UInt8], _ slot: EscrowSlot, clearingKey: HybridPublicKey
  ) -> [UInt8] {
    EscrowProof.message(
      "coffer escrow offer 0",
      [
        vault.bytes, context, slot.recipient.bytes, slot.box.encapsulatedKey, slot.box.ciphertext, clearingKey.bytes,
      ])
  }

  /// Clears the passcode of the device that made this offer, with the company's private key. A device takes it for a week.
  ///
  /// - Parameter now: seconds since 1970.
  /// - Returns: the clearing, for the device alone and once; and the code that the person needs beside it, which must reach
  ///   them by another way.
  /// Throws `wrongEscrowKey`, and `damaged` for an offer that no device made which had the vault open.
  public func clearing(with key: HybridKey, now: Int64) throws(VaultError) -> (clearing: [UInt8], code: RecoveryKey) {
    try VaultError.catching {
      guard key.publicKey == escrowKey,
        let master = try? key.open(slot, info: Keybag.escrowInfo, authenticating: vault.bytes)
      else { throw VaultError.wrongEscrowKey }
      let proof = try EscrowProof(master: master, vault: vault)
      let message = Self.message(
        vault, context, EscrowSlot(recipient: escrowKey, box: slot), clearingKey: clearingKey)
      guard proof.key.verifyingKey.isValid(signature, for: message) else { throw VaultError.damaged(what: Self.name) }
      let code = RecoveryKey()
      let clearing = try Clearing(
        wrapping: master, under: code, in: .init(vault: vault, context: context, clearingKey: clearingKey),
        notAfter: now + Clearing.lifetime, proof: proof)
      return (try clearing.sealed(), code)
    }
  }
}

/// The key pair by which two who have never met show each other that they had a vault's master key.
struct EscrowProof {
  let key: SigningKey

  init(master: SecretKey, vault: VaultID) throws {
    key = try SigningKey(seed: master.derived("escrow proof", context: vault.bytes).secretBytes)
  }

  static func message(_ label: String, _ parts: [[UInt8]]) -> [UInt8] {
    var writer = ByteWriter()
    for part in [Array(label.utf8)] + parts { writer.write(counted: part) }
    return writer.bytes
  }
}
