internal import CofferPolicy

/// What people call the things that rules name by their ids, in the order in which forms offer them.
struct PolicyNames: Sendable {
  var apps: [(identity: AppIdentity, name: String)] = []
  var classifications: [Classification] = []
  var groups: [DeviceGroup] = []

  /// Apps that a form offers, the first ones.
  private static let appLimit = 500

  /// Those of a company at present.
  init(of tenant: String, in transaction: any StoreTransaction) throws {
    apps = try transaction.appRecords(tenant: tenant, after: 0, limit: Self.appLimit)
      .map { ($0.value.approval.identity, $0.value.approval.name) }
    classifications = try transaction.resources(.classification, tenant: tenant)
      .map { try $0.decoded(Classification.self) }
    groups = try transaction.resources(.group, tenant: tenant).map { try $0.decoded(DeviceGroup.self) }
  }

  /// The same with what one policy calls its own.
  func with(_ apps: [AppApproval], _ classifications: [Classification]) -> PolicyNames {
    var names = self
    names.apps = apps.map { ($0.identity, $0.name) } + self.apps
    names.classifications = classifications + self.classifications
    return names
  }

  func app(_ identity: AppIdentity) -> String {
    apps.first { $0.identity == identity }?.name ?? "\(identity.bundleId) of \(identity.teamId)"
  }

  func classification(_ id: String) -> String { classifications.first { $0.id == id }?.name ?? id }
  func group(_ id: String) -> String { groups.first { $0.id == id }?.name ?? id }
}
