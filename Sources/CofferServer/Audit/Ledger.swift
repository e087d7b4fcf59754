/// Appends to a company's audit, in the transaction of what is recorded: both are durable, or neither.
struct Ledger {
  let tenant: String
  let time: Int64
  let transaction: any StoreTransaction

  func append(
    _ action: AuditAction, by actor: Actor, subject: String? = nil, details: [String: String] = [:]
  ) throws {
    let last = try transaction.lastAuditRecord(tenant: tenant)
    let entry = AuditEntry(
      number: (last?.number ?? 0) + 1, time: time, tenant: tenant, actor: actor, action: action, subject: subject,
      details: details
    )
    let bytes = entry.canonical
    let hash = AuditRecord.hash(previous: last?.hash ?? AuditRecord.genesis, entry: bytes)
    try transaction.append(AuditRecord(number: entry.number, entry: bytes, hash: hash), tenant: tenant)
  }
}
