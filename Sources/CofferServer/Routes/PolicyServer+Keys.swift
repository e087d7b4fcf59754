internal import CofferCrypto
internal import CofferPolicy
internal import CofferSystem
internal import HTTPTypes
internal import Hummingbird

/// A company's keys: what devices trust, and what the company can do when one is lost.
extension PolicyServer {
  private struct KeysView: Encodable {
    struct Delegated: Encodable {
      let use: Delegation.Use
      let key: String
      let notAfter: Int64
    }

    let rootKey: String
    let rootFingerprint: String
    let rootExportedAt: Int64?
    let keyEpoch: Int64
    let signingKey: String
    let keysetNotAfter: Int64
    let delegations: [Delegated]

    init(_ tenant: Tenant) {
      rootKey = tenant.keys.root.text
      rootFingerprint = tenant.keys.root.fingerprint.hexadecimal
      rootExportedAt = tenant.rootExportedAt
      keyEpoch = tenant.keys.epoch
      signingKey = tenant.keys.signing.text
      keysetNotAfter = tenant.keys.keysetNotAfter
      delegations = tenant.delegations.compactMap { stored in
        (try? SignedDelegation(verifying: stored.document, root: tenant.keys.root, tenant: tenant.id))
          .map { Delegated(use: $0.delegation.use, key: $0.delegation.key, notAfter: $0.delegation.notAfter) }
      }
    }

    var tag: EntityTag { EntityTag(of: Response.encoded(self)) }
  }

  @Sendable func showKeys(_ call: Call, _ caller: Caller) async throws -> Response {
    Self.response(try found(await store.read { try $0.tenant(id: caller.tenant) }))
  }

  /// Withdraws the signing key. The policy is signed anew in the same transaction, and devices hear of it.
  @Sendable func rotateKeys(_ call: Call, _ caller: Caller) async throws -> Response {
    let tenant = try await commit(caller) { change in
      var tenant = try found(change.transaction.tenant(id: caller.tenant))
      try call.requireMatch(KeysView(tenant).tag)
      let old = KeysView(tenant)
      tenant.keys = try publisher.rotated(tenant)
      try change.transaction.update(tenant)
      try publisher.signOrdersAnew(of: tenant, in: change)
      change.isPolicyChanged = true
      try change.record(
        .keysRotated, nil, ["keyEpoch": "\(tenant.keys.epoch)"], from: old, to: KeysView(tenant))
      return tenant
    }
    return Self.response(tenant)
  }

  private struct DelegationBody: StrictBody {
    enum CodingKeys: String, CodingKey, CaseIterable { case use, key }
    let use: Delegation.Use
    /// Of an escrow key, which the company keeps; a key for wiping is made and kept here.
    let key: String?
  }

  @Sendable func delegateKey(_ call: Call, _ caller: Caller) async throws -> Response {
    let body = try call.strict(DelegationBody.self)
    guard (body.use == .escrow) == (body.key != nil) else {
      throw HTTPProblem.invalid("key", "is given for escrow and for nothing else")
    }
    if let key = body.key {
      guard let bytes = Base64URL.decode(key), (try? HybridPublicKey(bytes: bytes)) != nil else {
        throw HTTPProblem.invalid("key", "is not an X25519 public key in base64url")
      }
    }
    let tenant = try await commit(caller) { change in
      let old = try found(change.transaction.tenant(id: caller.tenant))
      try call.requireMatch(KeysView(old).tag)
      if body.use == .escrow { try TwoPeople.demandUnusedEscrowKey(in: change) }
      let (tenant, signed) = try publisher.delegating(body.use, key: body.key, for: old)
      try change.transaction.update(tenant)
      try publisher.signOrdersAnew(of: tenant, in: change)
      // It is signed into the policy of a company that asks for it.
      if body.use == .escrow, old.settings.managedSettings.isEscrowAsked { change.isPolicyChanged = true }
      try change.record(
        .keyDelegated, nil, ["use": body.use.rawValue, "key": signed.delegation.key], from: KeysView(old),
        to: KeysView(tenant))
      return tenant
    }
    return Self.response(tenant)
  }

  private struct ExportBody: StrictBody {
    enum CodingKeys: String, CodingKey, CaseIterable { case password, passphrase }
    /// The person's own, again.
    let password: String
    /// What the export is sealed under.
    let passphrase: String
  }

  private struct ExportView: Encodable {
    let format = "coffer-root-key"
    let version = 1
    let tenant: String
    let rootKey: String
    /// scrypt's parameters, and its salt in base64url.
    let costExponent: Int
    let salt: String
    /// AES-256-GCM: nonce, ciphertext and tag, in base64url.
    let sealed: String
  }

  /// Hands out the root key, once, to a person who gives the password again: a stolen session is too little for it.
  @Sendable func exportRootKey(_ call: Call, _ signedIn: SignedIn) async throws -> Response {
    let body = try call.strict(ExportBody.self)
    let passphrase = try Administration.password(body.passphrase)
    try await demandPassword(body.password, of: signedIn, address: call.address)
    let derivation = try PasscodeDerivation(
      costExponent: passwords.costExponent, salt: Randomness.bytes(16))
    let key = try await passwords.key(derivation, of: passphrase, for: Self.party(signedIn, call.address))
    let person = signedIn.administrator
    let view = try await commit(Caller(signedIn)) { change in
      var tenant = try found(change.transaction.tenant(id: person.tenant))
      guard tenant.rootExportedAt == nil else {
        throw HTTPProblem(.conflict, "It was exported once already; the copy of then is the copy.")
      }
      tenant.rootExportedAt = change.now
      try change.transaction.update(tenant)
      try change.record(.rootKeyExported, person.id)
      return ExportView(
        tenant: tenant.id, rootKey: tenant.keys.root.text, costExponent: derivation.costExponent,
        salt: Base64URL.encode(derivation.salt),
        sealed: Base64URL.encode(try publisher.exportedRoot(of: tenant, under: key)))
    }
    return .json(view)
  }

  private static func response(_ tenant: Tenant) -> Response {
    let view = KeysView(tenant)
    return .json(view, headers: [.eTag: view.tag.description])
  }
}
