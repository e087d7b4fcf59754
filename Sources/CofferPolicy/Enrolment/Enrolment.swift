public import CofferCrypto

/// A device's membership of a company: whom it trusts, and the newest policy that it has accepted.
///
/// A value without clock or files: the container keeps it sealed, and keeps its anchor in the key store. Times are seconds
/// since 1970. Reading one back verifies every signature again.
public struct Enrolment: Hashable, Sendable {
  /// The company's id.
  public let tenant: String
  /// This device's id; documents for it alone are addressed to it.
  public let device: String
  /// Where the company's server is.
  public let server: String
  /// The company's root key, pinned when the device joined.
  public let root: VerifyingKey
  /// The only certificate that the server may show, in DER, when one was pinned. It replaces the system's trust.
  public let pinnedCertificate: [UInt8]?

  public internal(set) var keyset: SignedKeyset
  public internal(set) var bundle: PolicyBundle
  /// The last status that confirmed ``bundle``.
  public internal(set) var lastStatus: Status?
  /// The highest time in a verified document of this epoch. Documents that expired before it are refused, whatever
  /// the device's clock says. Begins anew with each epoch, so that a stolen key cannot move time for ever.
  public internal(set) var trustedTime: Int64
  /// When the company last said that ``bundle`` is its policy, by the company's clock.
  public internal(set) var confirmedAt: Int64
  /// The highest time that this device has seen since then.
  public internal(set) var seenTime: Int64
  /// When it was that time, on the clock that nobody sets; absent where that is not known.
  public internal(set) var seenUptime: Uptime?
  /// The groups that the company said this device is in, when it last confirmed its policy; absent before it ever did.
  public internal(set) var groups: [String]?

  /// The newest entry of the company's audit that a status named.
  public internal(set) var auditMark: AuditMark?
  /// The epoch of the keys that named it; absent before any did.
  public internal(set) var auditEpoch: Int64?
  /// That the audit was not that one later.
  public internal(set) var auditFault: AuditFault?

  /// The policy to decide by.
  public var policy: Policy { bundle.policy }

  /// Joins a company.
  ///
  /// - Parameters:
  ///   - fingerprint: SHA-256 of the root key, from the enrolment code: what makes the first contact authentic.
  /// - Throws: ``PolicyRefusal/foreignRoot`` when `root` has another fingerprint; otherwise as ``accepting(bundle:keyset:now:)``.
  public init(
    tenant: String, device: String, server: String, root: VerifyingKey, fingerprint: [UInt8],
    pinnedCertificate: [UInt8]?, keyset: String, bundle: String, now: Int64
  ) throws(PolicyRefusal) {
    guard equalInConstantTime(root.fingerprint, fingerprint) else { throw .foreignRoot }
    guard PolicyText.isIdentifier(tenant), PolicyText.isIdentifier(device), device != Policy.everyDevice else {
      throw .malformed("enrolment")
    }
    let keyset = try SignedKeyset(verifying: keyset, root: root)
    guard keyset.keyset.tenant == tenant else { throw .otherTenant }
    guard keyset.keyset.notAfter >= now else { throw .expired(.keyset) }
    let bundle = try PolicyBundle(verifying: bundle, keyset: keyset.keyset)
    let signedTime = max(keyset.keyset.issuedAt, bundle.policy.issuedAt)
    guard bundle.policy.isAddressed(to: device) else { throw .otherAudience }
    guard bundle.policy.issuedAt <= keyset.keyset.notAfter else { throw .expired(.keyset) }
    guard bundle.policy.notAfter >= max(now, signedTime) else { throw .expired(.policy) }
    self.tenant = tenant
    self.device = device
    self.server = server
    self.root = root
    self.pinnedCertificate = pinnedCertificate
    self.keyset = keyset
    self.bundle = bundle
    trustedTime = signedTime
    confirmedAt = bundle.policy.issuedAt
    seenTime = max(now, confirmedAt)
  }

  /// What time it is at least: the latest of the device's clock, the highest time seen, and the highest time seen plus
  /// what the clock that nobody sets counted since. Setting the clock back, or holding it still, gains nothing.
  public func present(now: Int64, uptime: Uptime? = nil) -> Int64 {
    let (counted, overflow) = seenTime.addingReportingOverflow(uptime?.elapsed(since: seenUptime) ?? 0)
    return max(now, seenTime, overflow ? .max : counted)
  }

  /// How old the policy is, in seconds: the time since the company last confirmed it, at ``present(now:uptime:)``.
  public func age(now: Int64, uptime: Uptime? = nil) -> Int64 {
    // Neither is negative, and what was seen is never before what was confirmed.
    present(now: now, uptime: uptime) - confirmedAt
  }

  /// The enrolment after the device's clocks showed `now` and `uptime`.
  public func observing(now: Int64, uptime: Uptime? = nil) -> Enrolment {
    var next = self
    next.seenTime = present(now: now, uptime: uptime)
    next.seenUptime = uptime
    return next
  }
}

extension Policy {
  func isAddressed(to device: String) -> Bool { audience == Policy.everyDevice || audience == device }
}
