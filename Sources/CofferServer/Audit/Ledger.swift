internal import CofferCrypto
internal import CofferSystem
internal import Hummingbird

/// Appends to a company's audit, in the transaction of what is recorded: both are durable, or neither.
struct Ledger {
  let tenant: String
  let time: Int64
  let transaction: any StoreTransaction

  /// - Parameters:
  ///   - old: what was changed as it was, and `new` as it is now, both as the API shows it. The entry holds their digests.
  func append(
    _ action: AuditAction, by actor: Actor, subject: String? = nil, details: [String: String] = [:],
    from old: (any Encodable)? = nil, to new: (any Encodable)? = nil
  ) throws {
    try append(
      action, by: actor, subject: subject, details: details, digests: (old.map(Self.digest), new.map(Self.digest)))
  }

  /// The same of what is stored as the API shows it.
  func append(
    _ action: AuditAction, by actor: Actor, subject: String?, details: [String: String],
    replacing old: StoredResource?, with new: StoredResource?
  ) throws {
    let digest = { (stored: StoredResource) in Digest.sha256(stored.body.utf8).hexadecimal }
    try append(action, by: actor, subject: subject, details: details, digests: (old.map(digest), new.map(digest)))
  }

  private func append(
    _ action: AuditAction, by actor: Actor, subject: String?, details: [String: String],
    digests: (before: String?, after: String?)
  ) throws {
    var details = details
    if let before = digests.before { details[AuditEntry.before] = before }
    if let after = digests.after { details[AuditEntry.after] = after }
    let last = try transaction.lastAuditRecord(tenant: tenant)
    let entry = AuditEntry(
      number: (last?.number ?? 0) + 1, time: time, tenant: tenant, actor: actor, action: action, subject: subject,
      details: details
    )
    let bytes = entry.canonical
    let hash = AuditRecord.hash(previous: last?.hash ?? AuditRecord.genesis, entry: bytes)
    try transaction.append(AuditRecord(number: entry.number, entry: bytes, hash: hash), tenant: tenant)
  }

  /// Of the JSON as the API answers it, and as an ETag has it.
  private static func digest(_ state: any Encodable) -> String { Digest.sha256(Response.encoded(state)).hexadecimal }
}
