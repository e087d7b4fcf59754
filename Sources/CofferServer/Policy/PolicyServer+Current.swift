internal import CofferAPI
internal import CofferSystem
internal import Hummingbird
internal import NIOCore

/// A company's policy as its devices get it.
struct Published: Sendable {
  let tenant: Tenant
  let revision: Revision
  let lastAudit: AuditRecord?
  /// The answer to `GET /v1/device/policy`.
  let document: ByteBuffer

  init(_ current: Publisher.Current, lastAudit: AuditRecord?) {
    (tenant, revision) = current
    self.lastAudit = lastAudit
    document = ByteBuffer(
      bytes: Response.encoded(PolicyResponse(keyset: tenant.keys.keyset, policy: revision.bundle)))
  }
}

/// What is in force now, also where it changes by time alone.
extension PolicyServer {
  /// A company's newest revision, signed anew first where it has to be.
  func published(tenant id: String) async throws -> Published {
    @Sendable func read(_ transaction: any StoreTransaction) throws -> Published? {
      guard let current = try publisher.load(id, in: transaction) else { return nil }
      return Published(current, lastAudit: try transaction.lastAuditRecord(tenant: id))
    }
    if let published = try await reads.value(.published(tenant: id), read),
      publisher.isFresh((published.tenant, published.revision))
    {
      return published
    }
    _ = try await current(tenant: id)
    return try found(await store.read(read))
  }

  /// A company's newest revision, signed anew first where it has to be. The devices that are connected then hear of it.
  func current(tenant id: String) async throws -> Publisher.Current {
    if let current = try await store.read({ try publisher.fresh(tenant: id, in: $0) }) { return current }
    let before = try await store.read { try $0.currentRevision(tenant: id) }
    let current = try found(await store.write { try publisher.current(tenant: id, in: $0) })
    events.wake(tenant: id, revision: current.revision.number)
    if let before, publisher.isAhead(before) {
      log.warning(
        """
        tenant \(public: id): revision \(public: before.number) was signed by a clock that was ahead, and is signed \
        anew. Devices that took it come back when the keys are changed.
        """)
    }
    return current
  }

  /// Signs the policies anew in which an approval has ended: nobody else may come and ask.
  func endApprovals() async {
    do {
      let now = time.now().seconds
      for tenant in try await store.read({ try $0.tenants(policyChangesBy: now) }) {
        _ = try await current(tenant: tenant)
      }
    } catch {
      log.error("approvals that are over stay for now: \(error: error)")
    }
  }
}
