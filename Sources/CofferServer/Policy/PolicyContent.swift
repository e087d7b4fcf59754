internal import CofferPolicy

/// What of a policy people write, but for the apps, whose approvals have a life of their own. Drafts hold one.
struct PolicyContent: Codable, Hashable, Sendable {
  var rules: [Rule]
  var classifications: [Classification]
  var fileTypes: [FileType]
  var settings: Settings
  var grace: Grace

  /// A company's present one.
  init(of tenant: Tenant, in transaction: any StoreTransaction) throws {
    rules = try transaction.resources(.rule, tenant: tenant.id).map { try $0.decoded(Rule.self) }
    classifications = try transaction.resources(.classification, tenant: tenant.id)
      .map { try $0.decoded(Classification.self) }
    fileTypes = try transaction.resources(.fileType, tenant: tenant.id).map { try $0.decoded(FileType.self) }
    settings = tenant.settings
    grace = tenant.grace
  }

  /// That of an earlier policy, without the rules that this server makes itself.
  init(of policy: Policy) {
    rules = policy.rules.filter { !Self.isOwn($0.id) }
    classifications = policy.classifications
    fileTypes = policy.fileTypes
    settings = policy.settings
    grace = policy.grace
    // Which key was delegated then is no part of what people wrote.
    if case .string = settings.managed?[Self.escrow] { settings.managed?[Self.escrow] = .boolean(true) }
  }

  private static let escrow = ManagedSettings.Key.escrow.rawValue

  /// The settings as devices get them: that vaults are to be sealed to the escrow key takes the root's word which one that
  /// is. Without it devices seal to none.
  private func signedSettings(of tenant: Tenant) -> Settings {
    var signed = settings
    if signed.managed?[Self.escrow] == .boolean(true), let delegation = tenant.escrowDelegation {
      signed.managed?[Self.escrow] = .string(delegation)
    }
    return signed
  }

  /// Whether a rule's id is one that this server gives.
  static func isOwn(_ id: String) -> Bool { appOfOwn(id) != nil }

  /// The app that a rule of this server's own is about, by the rule's id.
  static func appOfOwn(_ id: String) -> String? {
    id.hasPrefix(AppRecord.versionRulePrefix) ? String(id.dropFirst(AppRecord.versionRulePrefix.count)) : nil
  }

  func policy(
    of tenant: Tenant, revision: Int64, issuedAt: Int64, notAfter: Int64, prevHash: String?, apps: [AppRecord]
  ) -> Policy {
    Policy(
      tenant: tenant.id, revision: revision, keyEpoch: tenant.keys.epoch, issuedAt: issuedAt, notAfter: notAfter,
      prevHash: prevHash, apps: apps.map(\.approval), rules: rules + apps.compactMap(\.versionRule),
      classifications: classifications, fileTypes: fileTypes, settings: signedSettings(of: tenant), grace: grace)
  }

  /// Makes this the company's content.
  func replace(in change: Change) throws {
    let transaction = change.transaction
    guard var tenant = try transaction.tenant(id: change.tenant) else { return }
    for kind in [ResourceKind.rule, .classification, .fileType] {
      try transaction.deleteResources(kind, tenant: change.tenant)
    }
    for rule in rules { try insert(.rule, rule.id, rule, change) }
    for classification in classifications { try insert(.classification, classification.id, classification, change) }
    for type in fileTypes { try insert(.fileType, type.extension, type, change) }
    let wasEscrowAsked = tenant.settings.managedSettings.isEscrowAsked
    tenant.settings = settings
    tenant.grace = grace
    if !wasEscrowAsked { try tenant.demandEscrowKey() }
    try transaction.update(tenant)
    change.isPolicyChanged = true
  }

  private func insert(_ kind: ResourceKind, _ id: String, _ value: some Encodable, _ change: Change) throws {
    guard try change.transaction.insert(StoredResource(kind, id: id, value), tenant: change.tenant) else {
      throw HTTPProblem.invalid(kind.rawValue, "\(id) is there twice")
    }
  }
}

extension Tenant {
  /// Throws where vaults are to be sealed to an escrow key and there is none: devices would seal to nobody.
  func demandEscrowKey() throws {
    guard !settings.managedSettings.isEscrowAsked || escrowDelegation != nil else {
      throw HTTPProblem(
        .conflict, "There is no escrow key yet: name one first, on the page Keys or by POST /v1/keys/delegations.")
    }
  }
}
