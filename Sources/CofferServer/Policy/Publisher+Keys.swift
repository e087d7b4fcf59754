internal import CofferCrypto
internal import CofferPolicy
internal import CofferSystem
internal import Foundation

/// What a company does with its keys.
extension Publisher {
  /// A new signing key in a new epoch: what the old one signs is refused by every device that has seen the new keyset,
  /// however far it ran ahead.
  func rotated(_ tenant: Tenant) throws -> TenantKeys {
    // Devices take no number beyond this one either.
    guard tenant.keys.epoch < Int64.max else { throw StoreError.damaged("key_epoch") }
    let signing = SigningKey()
    let keys = TenantKeys(
      root: tenant.keys.root, sealedRoot: tenant.keys.sealedRoot, signing: signing.verifyingKey,
      sealedSigning: try sealing.seal(signing, tenant: tenant.id, use: .signing), epoch: tenant.keys.epoch + 1,
      keyset: "", keysetNotAfter: 0)
    return try renewed(keys, tenant: tenant.id)
  }

  static let delegationLifetime: Int64 = 366 * 86_400

  /// The delegation for `use` that holds for at least the longest life of another command.
  func delegation(_ use: Delegation.Use, of tenant: Tenant) -> (stored: StoredDelegation, signed: SignedDelegation)? {
    tenant.delegations.compactMap { stored in
      (try? SignedDelegation(verifying: stored.document, root: tenant.keys.root, tenant: tenant.id))
        .map { (stored, $0) }
    }.first { $0.1.delegation.use == use && $0.1.delegation.notAfter > now + DeviceCommands.lifetimes.upperBound }
  }

  /// Lets the root sign a delegation, in place of one for the same use. Without `key`, for a new key that the server
  /// keeps.
  func delegating(_ use: Delegation.Use, key: String?, for tenant: Tenant) throws -> (Tenant, SignedDelegation) {
    var sealed: [UInt8]?
    var text = key
    if key == nil {
      let own = SigningKey()
      var seed = own.seed.withUnsafeBytes { Array($0) }
      defer { seed.withUnsafeMutableBytes { overwrite($0) } }
      sealed = try sealing.seal(seed, tenant: tenant.id, use: .delegated, id: use.rawValue)
      text = own.verifyingKey.text
    }
    let delegation = Delegation(
      tenant: tenant.id, use: use, key: text ?? "", issuedAt: now, notAfter: now + Self.delegationLifetime)
    let signed = try SignedDelegation(
      issuing: delegation, root: sealing.open(tenant.keys.sealedRoot, tenant: tenant.id, use: .root))
    var tenant = tenant
    tenant.delegations.removeAll { stored in
      let old = try? SignedDelegation(verifying: stored.document, root: tenant.keys.root, tenant: tenant.id)
      return old?.delegation.use == use
    }
    tenant.delegations.append(StoredDelegation(document: signed.document.text, sealedKey: sealed))
    return (tenant, signed)
  }

  /// Signs an order: a wipe with the delegated key, anything else with the company's own.
  func signed(_ command: DeviceCommand, of tenant: Tenant) throws -> String {
    try SignedCommand(issuing: command, key: commandKey(for: command.kind, of: tenant)).document.text
  }

  /// Signs the orders that wait with the keys that `tenant` has now. Those of before are in no document any more, so that
  /// a device that was away would refuse what they signed: a wipe would be lost, and shown as pending. Each is as new to
  /// its device, under its old id.
  func signOrdersAnew(of tenant: Tenant, in change: Change) throws {
    for record in try change.transaction.pendingCommands(tenant: tenant.id, now: change.now) {
      // Without its key an order waits for the next one.
      if record.command.kind == .wipe && delegation(.wipe, of: tenant) == nil { continue }
      let document = try signed(record.command, of: tenant)
      guard document != record.document else { continue }
      let number = try change.transaction.replaceDocument(of: record.command, by: document)
      change.commands.append((record.command.audience, number))
    }
  }

  private func commandKey(for kind: DeviceCommand.Kind, of tenant: Tenant) throws -> SigningKey {
    guard kind == .wipe else { return try signingKey(of: tenant) }
    guard let (stored, _) = delegation(.wipe, of: tenant), let sealed = stored.sealedKey else {
      throw HTTPProblem(.conflict, "No key is delegated for wiping.")
    }
    var seed = try sealing.open(sealed, tenant: tenant.id, use: .delegated, id: Delegation.Use.wipe.rawValue)
    defer { seed.withUnsafeMutableBytes { overwrite($0) } }
    return try SigningKey(seed: seed.withUnsafeBytes { SecretBytes(copying: $0) })
  }

  /// The root key, sealed under a passphrase, for a safe.
  func exportedRoot(of tenant: Tenant, under key: SecretKey) throws -> [UInt8] {
    let root = try sealing.open(tenant.keys.sealedRoot, tenant: tenant.id, use: .root)
    var seed = root.seed.withUnsafeBytes { Array($0) }
    defer { seed.withUnsafeMutableBytes { overwrite($0) } }
    return try Sealing.seal(seed, key: key, authenticating: Array("coffer root key:\(tenant.id)".utf8))
  }

  /// How far the company's audit reaches, signed.
  func checkpoint(_ tenant: Tenant, _ record: AuditRecord?) throws -> SignedCheckpoint {
    let checkpoint = AuditCheckpoint(
      tenant: tenant.id, number: record?.number ?? 0, hash: (record?.hash ?? AuditRecord.genesis).hexadecimal,
      time: now, keyEpoch: tenant.keys.epoch)
    return try SignedCheckpoint(issuing: checkpoint, key: signingKey(of: tenant))
  }
}
