internal import CofferCrypto

/// Signed documents are kept as they came, and verified again when they are read.
extension Enrolment: Codable {
  private enum Key: String, CodingKey {
    case tenant, device, server, root, pinnedCertificate, keyset, bundle, lastStatus, trustedTime, confirmedAt, seenTime
    case seenUptime, groups, auditMark, auditEpoch, auditFault
  }

  /// Throws ``PolicyRefusal`` when a signature does not hold or the documents do not belong together; expiry is no
  /// reason, for the last good policy holds until the grace period ends.
  public init(from decoder: any Decoder) throws {
    let container = try decoder.container(keyedBy: Key.self)
    tenant = try container.decode(String.self, forKey: .tenant)
    device = try container.decode(String.self, forKey: .device)
    server = try container.decode(String.self, forKey: .server)
    root = try container.decode(VerifyingKey.self, forKey: .root)
    pinnedCertificate = try container.decodeIfPresent(String.self, forKey: .pinnedCertificate).map { text in
      guard let bytes = Base64URL.decode(text) else { throw PolicyRefusal.malformed("enrolment") }
      return bytes
    }
    keyset = try SignedKeyset(verifying: container.decode(String.self, forKey: .keyset), root: root)
    bundle = try PolicyBundle(verifying: container.decode(String.self, forKey: .bundle), keyset: keyset.keyset)
    lastStatus = try container.decodeIfPresent(Status.self, forKey: .lastStatus)
    trustedTime = try container.decode(Int64.self, forKey: .trustedTime)
    confirmedAt = try container.decode(Int64.self, forKey: .confirmedAt)
    seenTime = try container.decode(Int64.self, forKey: .seenTime)
    seenUptime = try container.decodeIfPresent(Uptime.self, forKey: .seenUptime)
    groups = try container.decodeIfPresent([String].self, forKey: .groups)
    auditMark = try container.decodeIfPresent(AuditMark.self, forKey: .auditMark)
    auditEpoch = try container.decodeIfPresent(Int64.self, forKey: .auditEpoch)
    auditFault = try container.decodeIfPresent(AuditFault.self, forKey: .auditFault)
    guard keyset.keyset.tenant == tenant, policy.isAddressed(to: device), confirmedAt >= policy.issuedAt,
      seenTime >= confirmedAt, trustedTime >= 0
    else { throw PolicyRefusal.malformed("enrolment") }
  }

  public func encode(to encoder: any Encoder) throws {
    var container = encoder.container(keyedBy: Key.self)
    try container.encode(tenant, forKey: .tenant)
    try container.encode(device, forKey: .device)
    try container.encode(server, forKey: .server)
    try container.encode(root, forKey: .root)
    try container.encodeIfPresent(pinnedCertificate.map { Base64URL.encode($0) }, forKey: .pinnedCertificate)
    try container.encode(keyset.document.text, forKey: .keyset)
    try container.encode(bundle.document.text, forKey: .bundle)
    try container.encodeIfPresent(lastStatus, forKey: .lastStatus)
    try container.encode(trustedTime, forKey: .trustedTime)
    try container.encode(confirmedAt, forKey: .confirmedAt)
    try container.encode(seenTime, forKey: .seenTime)
    try container.encodeIfPresent(seenUptime, forKey: .seenUptime)
    try container.encodeIfPresent(groups, forKey: .groups)
    try container.encodeIfPresent(auditMark, forKey: .auditMark)
    try container.encodeIfPresent(auditEpoch, forKey: .auditEpoch)
    try container.encodeIfPresent(auditFault, forKey: .auditFault)
  }
}
