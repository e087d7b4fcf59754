import CofferCrypto
import CofferPolicy

/// A company that issues what devices take, and what they must refuse.
struct Company {
  var tenant = "acme"
  let root = SigningKey()
  var key = SigningKey()
  var epoch: Int64 = 1
  /// When everything is issued, unless said otherwise.
  var now: Int64 = 1_000_000

  static let lifetime: Int64 = 1_000_000

  func keyset(
    keys: [VerifyingKey]? = nil, issuedAt: Int64? = nil, notAfter: Int64? = nil, root: SigningKey? = nil
  ) throws -> String {
    let keyset = Keyset(
      tenant: tenant, epoch: epoch, keys: keys ?? [key.verifyingKey], issuedAt: issuedAt ?? now,
      notAfter: notAfter ?? (issuedAt ?? now) + Self.lifetime)
    return try SignedKeyset(issuing: keyset, root: root ?? self.root).document.text
  }

  func policy(_ revision: Int64, after previous: String? = nil, change: (inout Policy) -> Void = { _ in }) -> Policy {
    var policy = Policy(
      tenant: tenant, revision: revision, keyEpoch: epoch, issuedAt: now, notAfter: now + Self.lifetime,
      prevHash: previous)
    change(&policy)
    return policy
  }

  func bundle(
    _ revision: Int64, after previous: String? = nil, key: SigningKey? = nil, change: (inout Policy) -> Void = { _ in }
  ) throws -> String {
    try PolicyBundle(issuing: policy(revision, after: previous, change: change), key: key ?? self.key).document.text
  }

  func status(of enrolment: Enrolment, nonce: String, change: (inout Status) -> Void = { _ in }) throws -> String {
    var status = Status(
      tenant: tenant, audience: enrolment.device, nonce: nonce, revision: enrolment.policy.revision,
      digest: enrolment.bundle.digest, time: now, keyEpoch: epoch)
    change(&status)
    return try SignedStatus(issuing: status, key: key).document.text
  }

  func enrol(
    revision: Int64 = 5, fingerprint: [UInt8]? = nil, keyset: String? = nil, bundle: String? = nil, now: Int64? = nil
  ) throws -> Enrolment {
    try Enrolment(
      tenant: "acme", device: "device-1", server: "https://policy.example", root: root.verifyingKey,
      fingerprint: fingerprint ?? root.verifyingKey.fingerprint, pinnedCertificate: nil,
      keyset: keyset ?? self.keyset(), bundle: bundle ?? self.bundle(revision), now: now ?? self.now)
  }
}
