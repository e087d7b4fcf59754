internal import CofferPolicy

/// Where a company asks two people for approvals, one alone does not let more through by anything else that devices decide
/// by either. What only narrows one person does at once: a prohibition must not wait.
enum TwoPeople {
  /// Whether `new` may let something through that `old` does not.
  static func widens(from old: PolicyContent, to new: PolicyContent) -> Bool {
    widens(from: old.rules, to: new.rules) || widens(from: old.fileTypes, to: new.fileTypes)
      || widens(from: old.settings, to: new.settings) || widens(from: old.grace, to: new.grace)
  }

  /// By a rule that permits, or for want of one that forbids.
  static func widens(from old: [Rule], to new: [Rule]) -> Bool {
    let (before, after) = (Set(old), Set(new))
    return new.contains { $0.effect == .permit && !before.contains($0) }
      || old.contains { $0.effect == .forbid && !after.contains($0) }
  }

  /// By content that agrees with an extension and did not before: what agrees with none is refused.
  static func widens(from old: [FileType], to new: [FileType]) -> Bool {
    let before = Dictionary(grouping: old, by: \.extension).mapValues { Set($0.flatMap(\.mediaTypes)) }
    return new.contains { !(before[$0.extension] ?? []).isSuperset(of: $0.mediaTypes) }
  }

  /// By what the device's owner may do, by apps that only a bundle id identifies, or by how devices are set.
  static func widens(from old: Settings, to new: Settings) -> Bool {
    !Set(old.ownerActions).isSuperset(of: new.ownerActions) || (new.allowFilteredTier && !old.allowFilteredTier)
      || loosens(from: old.managedSettings, to: new.managedSettings)
  }

  /// By deciding longer without news.
  static func widens(from old: Grace, to new: Grace) -> Bool { new.blockAfter > old.blockAfter }

  private static func loosens(from old: ManagedSettings, to new: ManagedSettings) -> Bool {
    (old.passcodeRequired == true && new.passcodeRequired != true)
      || new.passcodeMinimumLength ?? 0 < old.passcodeMinimumLength ?? 0
      || new.protectionAtLeast ?? .none < old.protectionAtLeast ?? .none
      || new.lockAfterMinutes ?? .max > old.lockAfterMinutes ?? .max
      // Whoever has the escrow key opens what is sealed to it.
      || (new.isEscrowAsked && !old.isEscrowAsked)
      || old.allowedServers.map { !Set($0).isSuperset(of: new.allowedServers ?? ["any"]) } ?? false
  }

  /// Throws a problem where one person alone would let more through.
  static func demandNarrowing(_ widens: @autoclosure () throws -> Bool, in change: Change) throws {
    guard try isAsked(in: change), try widens() else { return }
    throw HTTPProblem(
      .conflict, "The company asks two people for what lets more through: write a draft, which another publishes.")
  }

  /// Throws a problem unless a draft that lets more through is published by another person than those who wrote it. All signed
  /// in, and who wrote it may still change the policy.
  static func demandAnother(
    than writers: [String], from old: PolicyContent, to new: PolicyContent, in change: Change
  ) throws {
    guard try isAsked(in: change), widens(from: old, to: new) else { return }
    guard try isAnother(than: writers, in: change) else {
      throw HTTPProblem(
        .forbidden,
        "The company asks two people, who sign in themselves: another one than who wrote this, or a part of it, "
          + "publishes it.")
    }
  }

  /// Whether who publishes a draft is another person than all who wrote it.
  static func isAnother(than writers: [String], in change: Change) throws -> Bool {
    guard !writers.isEmpty else { return false }
    return try writers.allSatisfy { try isAnother(than: $0, who: .changePolicy, in: change) }
  }

  /// Throws a problem where one person alone would put another escrow key in the place of the one that two people asked to
  /// have vaults sealed to, or that a draft asks for.
  static func demandUnusedEscrowKey(in change: Change) throws {
    guard try isAsked(in: change) else { return }
    if try change.transaction.tenant(id: change.tenant)?.settings.managedSettings.isEscrowAsked == true {
      throw HTTPProblem(
        .conflict,
        "The company asks two people, and vaults are sealed to the key that is there: end escrow in the settings first, "
          + "name the other key, and ask for escrow again by a draft.")
    }
    let drafts = try change.transaction.resources(.draft, tenant: change.tenant)
    if try drafts.contains(where: { try $0.decoded(PolicyDraft.self).content.settings.managedSettings.isEscrowAsked }) {
      throw HTTPProblem(
        .conflict,
        "A draft asks for escrow, and whoever publishes it means the key that is there: delete the draft first.")
    }
  }

  /// Whether who changes something and who asked for it are two people who signed in, of whom the other still may do it.
  static func isAnother(than author: String?, who permission: Permission, in change: Change) throws -> Bool {
    guard case .administrator = change.actor, let author = author.flatMap(Actor.init),
      case .administrator(let id) = author, author != change.actor
    else { return false }
    let person = try change.transaction.administrator(tenant: change.tenant, id: id)
    return person?.role.permissions.contains(permission) == true
  }

  static func isAsked(in change: Change) throws -> Bool {
    try change.transaction.tenant(id: change.tenant)?.needsTwoApprovers ?? true
  }
}
