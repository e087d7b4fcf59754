internal import CofferPolicy
internal import CofferSystem
internal import Hummingbird

/// Which groups a device is in decides which rules are about it. Where a company asks two people, one asks for a change that
/// the rules know of, and another makes it by asking for the same.
struct GroupRequest: Codable, Hashable, Sendable {
  let groups: [String]
  /// Those that the device was in when it was asked.
  let base: [String]
  /// ``Actor``.
  let requester: String

  /// Whether `new` holds from now on; otherwise it has been noted that somebody asked for it.
  ///
  /// Throws a problem for a caller who is no person where two are asked.
  static func admits(_ new: [String], insteadOf old: [String], device: String, in change: Change) throws -> Bool {
    let transaction = change.transaction
    let stored = try transaction.resource(.deviceGroups, id: device, tenant: change.tenant)
    let touched = Set(new).symmetricDifference(old)
    guard try TwoPeople.isAsked(in: change), try !named(in: change).isDisjoint(with: touched) else {
      try withdraw(stored, of: device, in: change)
      return true
    }
    guard case .administrator = change.actor else {
      throw HTTPProblem(.forbidden, "The company asks two people, who sign in themselves, for groups that rules name.")
    }
    let known = try stored?.decoded(GroupRequest.self)
    if let known, known.groups == new, known.base == old,
      try TwoPeople.isAnother(than: known.requester, who: .manageDevices, in: change)
    {
      try withdraw(stored, of: device, in: change)
      return true
    }
    let request = StoredResource(
      .deviceGroups, id: device,
      GroupRequest(groups: new, base: old, requester: change.actor.description))
    guard request != stored else { return false }
    if stored == nil {
      _ = try transaction.insert(request, tenant: change.tenant)
    } else {
      _ = try transaction.update(request, tenant: change.tenant)
    }
    try change.record(.resourceCreated, device, replacing: stored, with: request)
    return false
  }

  /// Forgets what was asked for a device.
  static func withdraw(_ stored: StoredResource?, of device: String, in change: Change) throws {
    guard stored != nil else { return }
    _ = try change.transaction.deleteResource(.deviceGroups, id: device, tenant: change.tenant)
  }

  /// The groups that rules decide by.
  static func named(in change: Change) throws -> Set<String> {
    try change.transaction.resources(.rule, tenant: change.tenant).reduce(into: []) { named, stored in
      let rule = try stored.decoded(Rule.self)
      named.formUnion(rule.groups ?? [])
      for condition in rule.conditions { if case .group(let group) = condition.test { named.insert(group) } }
    }
  }
}
