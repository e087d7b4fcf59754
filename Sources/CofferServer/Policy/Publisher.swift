internal import CofferCrypto
internal import CofferPolicy
internal import CofferSystem

/// Makes a company's keys and signs its policy. The only place that unseals private keys.
struct Publisher: Sendable {
  /// How long a bundle may be taken up, and a keyset used, in seconds. Both are signed anew when half of it is left.
  static let bundleLifetime: Int64 = 30 * 86_400
  static let keysetLifetime: Int64 = 366 * 86_400

  let sealing: KeySealing
  let time: any TimeSource

  var now: Int64 { time.now().seconds }

  /// A root key, a signing key, and the keyset of the first epoch.
  func newKeys(tenant: String) throws -> TenantKeys {
    let (root, signing) = (SigningKey(), SigningKey())
    let keys = TenantKeys(
      root: root.verifyingKey, sealedRoot: try sealing.seal(root, tenant: tenant, use: .root),
      signing: signing.verifyingKey, sealedSigning: try sealing.seal(signing, tenant: tenant, use: .signing),
      epoch: 1, keyset: "", keysetNotAfter: 0)
    return try renewed(keys, tenant: tenant)
  }

  /// Signs the policy as the store has it now and makes it the company's newest revision.
  ///
  /// Throws `ServerError.policyTooLarge` when no device would accept it; the transaction is then to be undone.
  func publish(_ tenant: Tenant, by actor: Actor, in transaction: any StoreTransaction) throws -> Revision {
    var tenant = try withFreshKeyset(tenant, in: transaction)
    let now = now
    try endApprovals(of: tenant.id, at: now, in: transaction)
    tenant.policyChangesAt = try transaction.nextAppExpiry(tenant: tenant.id)
    try transaction.update(tenant)
    let previous = try transaction.currentRevision(tenant: tenant.id)
    let content = try PolicyContent(of: tenant, in: transaction)
    let policy = content.policy(
      of: tenant, revision: (previous?.number ?? 0) + 1, issuedAt: now, notAfter: now + Self.bundleLifetime,
      prevHash: previous?.digest, apps: try transaction.appsInForce(tenant: tenant.id))
    let bundle: PolicyBundle
    do {
      bundle = try PolicyBundle(issuing: policy, key: signingKey(of: tenant))
    } catch let refusal as PolicyRefusal {
      guard case .malformed(let part) = refusal, part != "apps" else { throw ServerError.policyTooLarge }
      throw ServerError.policyInvalid(part)
    }
    let revision = Revision(
      tenant: tenant.id, number: policy.revision, bundle: bundle.document.text, digest: bundle.digest,
      keyEpoch: policy.keyEpoch, issuedAt: policy.issuedAt, notAfter: policy.notAfter)
    try transaction.insert(revision)
    var details = ["digest": revision.digest, AuditEntry.after: revision.digest]
    details[AuditEntry.before] = previous?.digest
    try Ledger(tenant: tenant.id, time: now, transaction: transaction)
      .append(.policyPublished, by: actor, subject: "\(revision.number)", details: details)
    return revision
  }

  /// Approvals whose time is over count as revoked from now on.
  private func endApprovals(of tenant: String, at now: Int64, in transaction: any StoreTransaction) throws {
    for var app in try transaction.apps(tenant: tenant, expiredBy: now) {
      let old = AppView(app)
      app.state = .revoked
      _ = try transaction.update(app, tenant: tenant)
      try Ledger(tenant: tenant, time: now, transaction: transaction)
        .append(
          .appRevoked, by: .server, subject: app.approval.id, details: ["reason": "its time is over"], from: old,
          to: AppView(app))
    }
  }

  /// A company and the newest revision of its policy.
  typealias Current = (tenant: Tenant, revision: Revision)

  /// The newest revision, unless it is to be signed anew. Nil when there is no such company, too.
  func fresh(tenant id: String, in transaction: any StoreTransaction) throws -> Current? {
    try load(id, in: transaction).flatMap { isFresh($0) ? $0 : nil }
  }

  /// The newest revision, signed anew first if half of its time or that of an approval is over. Nil when there is no such
  /// company.
  func current(tenant id: String, in transaction: any StoreTransaction) throws -> Current? {
    guard let current = try load(id, in: transaction) else { return nil }
    if isFresh(current) { return current }
    _ = try publish(current.tenant, by: .server, in: transaction)
    return try load(id, in: transaction)
  }

  func load(_ id: String, in transaction: any StoreTransaction) throws -> Current? {
    guard let tenant = try transaction.tenant(id: id), let revision = try transaction.currentRevision(tenant: id)
    else { return nil }
    return (tenant, revision)
  }

  func isFresh(_ current: Current) -> Bool {
    current.revision.notAfter - now > Self.bundleLifetime / 2 && !isAhead(current.revision)
      && current.tenant.keys.keysetNotAfter - now > Self.keysetLifetime / 2
      && current.tenant.policyChangesAt.map { now < $0 } ?? true
  }

  /// Whether a revision was signed by a clock that was ahead, and was put right since: whoever takes it believes that it is
  /// later than it is. The keyset stays as it is: devices take none that is older, in the same epoch.
  func isAhead(_ revision: Revision) -> Bool { revision.issuedAt > now + Lifetime.tolerance }

  /// The answer to a device's question what the policy is at present.
  func status(_ published: Published, groups: [String], device: String, nonce: String) throws -> String {
    let (tenant, revision) = (published.tenant, published.revision)
    let status = Status(
      tenant: tenant.id, audience: device, nonce: nonce, revision: revision.number, digest: revision.digest,
      time: now, keyEpoch: tenant.keys.epoch,
      audit: published.lastAudit.map { AuditMark(number: $0.number, hash: $0.hash.hexadecimal) },
      groups: groups.isEmpty ? nil : groups)
    return try SignedStatus(issuing: status, key: signingKey(of: tenant)).document.text
  }

  func signingKey(of tenant: Tenant) throws -> SigningKey {
    try sealing.open(tenant.keys.sealedSigning, tenant: tenant.id, use: .signing)
  }

  private func withFreshKeyset(_ tenant: Tenant, in transaction: any StoreTransaction) throws -> Tenant {
    guard tenant.keys.keysetNotAfter - now <= Self.keysetLifetime / 2 else { return tenant }
    var tenant = tenant
    tenant.keys = try renewed(tenant.keys, tenant: tenant.id)
    try transaction.update(tenant)
    return tenant
  }

  /// The same keys in the same epoch, signed by the root for another year.
  func renewed(_ keys: TenantKeys, tenant: String) throws -> TenantKeys {
    let now = now
    let keyset = Keyset(
      tenant: tenant, epoch: keys.epoch, keys: [keys.signing], issuedAt: now, notAfter: now + Self.keysetLifetime)
    let signed = try SignedKeyset(
      issuing: keyset, root: sealing.open(keys.sealedRoot, tenant: tenant, use: .root))
    return TenantKeys(
      root: keys.root, sealedRoot: keys.sealedRoot, signing: keys.signing, sealedSigning: keys.sealedSigning,
      epoch: keys.epoch, keyset: signed.document.text, keysetNotAfter: keyset.notAfter)
  }
}
