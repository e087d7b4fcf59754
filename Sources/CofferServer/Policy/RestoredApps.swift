internal import CofferPolicy

/// The approvals of an earlier revision that come back with it.
///
/// An app is found by its id, whatever it is called by now, or by its name where it was approved anew. One that was removed
/// since does not come back, for until when it was approved is gone with it; nor does one whose time is over.
struct RestoredApps: Sendable {
  struct App: Sendable {
    let approval: AppApproval
    let minimumVersion: String?
    /// What has it at present.
    let known: AppRecord

    /// It is in force as it was.
    var isUnchanged: Bool {
      known.state == .approved && known.approval == approval && known.details.minimumVersion == minimumVersion
    }
  }

  let apps: [App]
  private let earlier: Policy

  init(of earlier: Policy, tenant: String, now: Int64, in transaction: any StoreTransaction) throws {
    self.earlier = earlier
    let versions = earlier.rules.reduce(into: [String: String]()) { versions, rule in
      guard let app = PolicyContent.appOfOwn(rule.id), case .appVersion(let range)? = rule.conditions.first?.test else {
        return
      }
      versions[app] = range.below
    }
    let own = try earlier.apps.map { try transaction.appRecord(tenant: tenant, id: $0.id) }
    // Each stands for one approval.
    var used = Set(own.compactMap { $0?.approval.id })
    var apps: [App] = []
    for (approval, own) in zip(earlier.apps, own) {
      var known = own
      if known == nil, let other = try transaction.appRecord(tenant: tenant, identity: approval.identity),
        other.state == .approved, used.insert(other.approval.id).inserted
      {
        known = other
      }
      guard let known, known.approvedUntil.map({ $0 > now }) ?? true else { continue }
      apps.append(App(approval: approval, minimumVersion: versions[approval.id], known: known))
    }
    self.apps = apps
  }

  /// What the revision said, with these apps alone.
  var policy: Policy {
    var policy = earlier
    policy.apps = apps.map(\.approval)
    let ids = Set(policy.apps.map(\.id))
    policy.rules.removeAll { rule in PolicyContent.appOfOwn(rule.id).map { !ids.contains($0) } ?? false }
    return policy
  }

  /// Puts them in force, and ends what the revision did not approve.
  ///
  /// Throws a conflict where two people have to approve one of them.
  func bringBack(in change: Change) throws {
    let (transaction, tenant) = (change.transaction, change.tenant)
    let staying = Set(earlier.apps.map(\.id) + apps.map(\.known.approval.id))
    for var app in try transaction.appsInForce(tenant: tenant) where !staying.contains(app.approval.id) {
      let old = AppView(app)
      app.state = .revoked
      app.details.revokedBy = change.actor.description
      _ = try transaction.update(app, tenant: tenant)
      try change.record(.appRevoked, app.approval.id, from: old, to: AppView(app))
    }
    let changed = apps.filter { !$0.isUnchanged }
    if let first = changed.first, try transaction.tenant(id: tenant)?.needsTwoApprovers != false {
      throw HTTPProblem(.conflict, "It approves \(first.approval.bundleId), for which the company asks two people.")
    }
    // All make room before the first is put back: they may have changed names.
    for app in changed { _ = try transaction.deleteApp(tenant: tenant, id: app.known.approval.id) }
    for app in changed {
      guard let other = try transaction.appRecord(tenant: tenant, identity: app.approval.identity) else { continue }
      _ = try transaction.deleteApp(tenant: tenant, id: other.approval.id)
      try change.record(.appRemoved, other.approval.id, ["revision": "\(earlier.revision)"], from: AppView(other))
    }
    for app in changed { try put(app, change) }
  }

  private func put(_ app: App, _ change: Change) throws {
    let record = AppRecord(
      approval: app.approval, state: .approved, expiresAt: app.known.approvedUntil,
      details: .init(
        platform: app.known.details.platform, minimumVersion: app.minimumVersion, requester: change.actor.description,
        approvers: [.init(actor: change.actor.description, at: change.now, reason: nil)]))
    try change.demandRoomForApp()
    guard try change.transaction.insert(record, tenant: change.tenant) else {
      throw HTTPProblem(.conflict, "An app stands in the way.")
    }
    var details = ["revision": "\(earlier.revision)"]
    if app.known.approval.id != app.approval.id { details["replaces"] = app.known.approval.id }
    try change.record(.appApproved, app.approval.id, details, from: AppView(app.known), to: AppView(record))
  }
}
