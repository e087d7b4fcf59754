public import CofferCrypto
public import CofferKeys
internal import CofferPolicy
public import CofferSystem
internal import CofferVault
internal import Foundation
internal import Synchronization

/// The company's escrow key: sealing the vault to it where policy asks for that, and clearing the passcode with it.
extension Container {
  private static let companyEscrowSetting = "company-escrow"

  /// What the company's policy has done to the keybag, so that a key of the person's own choice is told from the company's.
  private struct CompanyEscrow: Codable, Equatable {
    /// The key that was put in for the company, in hexadecimal; absent once it was taken out.
    var key: String?
    /// When the newest delegation was made that was followed.
    var issuedAt: Int64
  }

  /// The escrow key that the policy asks for and that holds, whether the vault is sealed to it yet or not.
  public var companyEscrowKey: HybridPublicKey? {
    guard case .enrolled(let enrolment) = gate.state else { return nil }
    return (try? enrolment.escrowKey())?.key
  }

  /// The same, where the vault is sealed to it: from then on the company can open it.
  public var sealedCompanyEscrowKey: HybridPublicKey? {
    companyEscrowKey.flatMap { key in (try? vault.keybagSummary())?.escrowKey == key ? key : nil }
  }

  /// What the last unlock made of the company's key; once.
  public func takeEscrowChange() -> EscrowChange? {
    escrowChange.withLock { change in
      defer { change = nil }
      return change
    }
  }

  /// Follows the policy, now that a passcode was shown. A failure here keeps nobody from the vault: it is tried again with
  /// the next passcode, and the company sees by the device's report what became of its setting.
  func settleEscrow(_ access: inout VaultAccess) {
    guard !isReadOnly else { return }
    // Whoever has the passcode needs no clearing. Where this fails it ends with its hour.
    try? vault.endClearing(with: access)
    guard case .enrolled(let enrolment) = gate.state else { return }
    do {
      if let asked = try enrolment.escrowKey() {
        try follow(asked, enrolment, &access)
      } else {
        try unfollow(&access)
      }
    } catch {
      // Also where what the policy shows does not hold: then nothing is put in and nothing is taken out.
    }
  }

  private func follow(_ asked: Enrolment.EscrowKey, _ enrolment: Enrolment, _ access: inout VaultAccess) throws {
    let before = try companyEscrow()
    // An earlier delegation may be of a key that was withdrawn, and shown again by who stole the signing key.
    if let before, asked.issuedAt < before.issuedAt { return }
    let next = CompanyEscrow(key: asked.key.bytes.hexadecimal, issuedAt: asked.issuedAt)
    // First, so that what is put in for the company is never taken for the person's own.
    if next != before { try keep(next) }
    if next == before, access.escrowKey == asked.key, try !vault.hasEscrowRecord() {
      // Sealing makes it anew, so that nobody would see that it was gone.
      guard gate.record(.escrowRecordMissing, isByCompany: false) else { return }
      try commit()
    }
    guard try vault.seal(toEscrowKey: asked.key, context: enrolment.clearingContext, with: &access) else { return }
    escrowChange.withLock { $0 = .added(asked.key) }
    gate.record(.escrowKeyAdded, isByCompany: true)
  }

  private func unfollow(_ access: inout VaultAccess) throws {
    guard var before = try companyEscrow(), let text = before.key else { return }
    if let bytes = [UInt8](hexadecimal: text), let key = try? HybridPublicKey(bytes: bytes),
      try vault.unseal(fromEscrowKey: key, with: &access)
    {
      escrowChange.withLock { $0 = .removed }
      gate.record(.escrowKeyRemoved, isByCompany: true)
    }
    before.key = nil
    try keep(before)
  }

  private func companyEscrow() throws -> CompanyEscrow? {
    try vault.setting(Self.companyEscrowSetting).flatMap {
      try? JSONDecoder().decode(CompanyEscrow.self, from: Data($0))
    }
  }

  private func keep(_ escrow: CompanyEscrow) throws {
    try vault.setSetting(Self.companyEscrowSetting, to: Array(try JSONEncoder().encode(escrow)))
    try vault.commitNames()
  }

  /// What this device hands to its company for the holder of its escrow key; nil where there is nothing.
  public func escrowOffer() throws -> ClearingOffer? {
    try ContainerError.catching { try vault.escrowOffer().map(ClearingOffer.init) }
  }

  /// Takes a clearing of the passcode, which an order brought: for an hour, whoever has its code sets a new passcode. The
  /// policy must ask for the key that it was made with.
  public func takeClearing(_ text: String) throws {
    try ContainerError.catching {
      guard case .enrolled(let enrolment) = gate.state, let asked = try? enrolment.escrowKey() else {
        throw ContainerError(.refused, "the company's policy asks for no escrow key that its root key vouches for")
      }
      guard let clearing = Base64URL.decode(text) else { throw VaultError.clearing(.notGenuine) }
      try vault.takeClearing(clearing, from: asked.key, context: enrolment.clearingContext)
    }
    // It holds from here on, whatever fails. What is not recorded now waits in the key store.
    recordEscrowUses()
  }

  /// Whether the clearing with this SHA-256 was taken, as one may be that an order brought to a process which was killed.
  public func hasTaken(clearing digest: [UInt8]) -> Bool { (try? vault.hasTaken(clearing: digest)) ?? false }

  /// As above, for a device that no order reaches any more because nobody can open its vault. The clearing's own proof is
  /// all there is then: whoever made it had the key that the vault is sealed to.
  public static func takeClearing(
    _ text: String, at path: String, keyStore: any KeyStore, time: any TimeSource = SystemTime()
  ) throws {
    try ContainerError.catching {
      guard let clearing = Base64URL.decode(text) else { throw VaultError.clearing(.notGenuine) }
      try Vault.takeClearing(clearing, at: path, keyStore: keyStore, time: time)
    }
  }

  /// Throws as a recovery with this code would, before anything is asked or changed.
  public static func requireClearing(
    _ code: RecoveryKey, at path: String, keyStore: any KeyStore, time: any TimeSource = SystemTime()
  ) throws {
    try ContainerError.catching { try Vault.requireClearing(code, at: path, keyStore: keyStore, time: time) }
  }

  /// Records what opened the vault without its passcode, also where the process ended that it was opened in. Stored here
  /// before it is forgotten there.
  func recordEscrowUses() {
    guard !isReadOnly, let uses = try? vault.unrecordedEscrowUses(), !uses.isEmpty else { return }
    let recorded = uses.prefix { use in
      let (event, isByCompany): (DeviceEvent, Bool) =
        switch use.means {
        case .escrowKey: (.escrowKeyUsed, true)
        case .cleared: (.passcodeCleared, true)
        case .clearing: (.clearingUsed, false)
        }
      return gate.record(event, isByCompany: isByCompany, time: use.time)
    }
    guard !recorded.isEmpty, (try? commit()) != nil else { return }
    try? vault.forgetEscrowUses(Array(recorded))
  }
}

/// What a device hands to its company, so that the holder of the escrow key can clear its passcode from afar.
public struct ClearingOffer: Sendable, Hashable {
  public let vault: VaultID
  public let escrowKey: HybridPublicKey
  /// The vault's master key, sealed to it.
  public let slot: HybridBox
  /// The device's own key, which a clearing is sealed to.
  public let clearingKey: HybridPublicKey
  public let signature: [UInt8]

  init(_ offer: EscrowOffer) {
    vault = offer.vault
    escrowKey = offer.escrowKey
    slot = offer.slot
    clearingKey = offer.clearingKey
    signature = offer.signature
  }

  public init(
    vault: VaultID, escrowKey: HybridPublicKey, slot: HybridBox, clearingKey: HybridPublicKey, signature: [UInt8]
  ) {
    self.vault = vault
    self.escrowKey = escrowKey
    self.slot = slot
    self.clearingKey = clearingKey
    self.signature = signature
  }

  /// Clears the passcode of the device that made this offer, with the company's private key. Needs neither the vault nor a
  /// network.
  ///
  /// - Returns: the clearing as an order carries it, for that device alone and once; and the code that the person needs
  ///   beside it, which must reach them by another way.
  public func clearing(
    with key: HybridKey, tenant: String, device: String, time: any TimeSource = SystemTime()
  ) throws -> (text: String, code: RecoveryKey) {
    try ContainerError.catching {
      let offer = try EscrowOffer(
        vault: vault, context: Enrolment.clearingContext(tenant: tenant, device: device), escrowKey: escrowKey,
        slot: slot, clearingKey: clearingKey, signature: signature)
      let (clearing, code) = try offer.clearing(with: key, now: time.now().seconds)
      return (Base64URL.encode(clearing), code)
    }
  }
}
