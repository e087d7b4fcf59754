internal import CofferSystem

/// What is in force now, also where it changes by time alone.
extension PolicyServer {
  /// A company's newest revision, signed anew first where it has to be. The devices that are connected then hear of it.
  func current(tenant id: String) async throws -> Publisher.Current {
    if let current = try await store.read({ try publisher.fresh(tenant: id, in: $0) }) { return current }
    let current = try found(await store.write { try publisher.current(tenant: id, in: $0) })
    events.wake(tenant: id, revision: current.revision.number)
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
