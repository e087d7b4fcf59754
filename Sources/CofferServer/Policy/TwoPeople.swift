internal import CofferPolicy

/// Where a company asks two people for approvals, one alone does not let more through by rules either. What only narrows
/// one person does at once: a prohibition must not wait.
enum TwoPeople {
  /// Whether `new` may let something through that `old` does not: by a rule that permits, or for want of one that forbids.
  static func widens(from old: [Rule], to new: [Rule]) -> Bool {
    let (before, after) = (Set(old), Set(new))
    return new.contains { $0.effect == .permit && !before.contains($0) }
      || old.contains { $0.effect == .forbid && !after.contains($0) }
  }

  /// Throws a problem where one person alone would let more through.
  static func demandNarrowing(from old: [Rule], to new: [Rule], in change: Change) throws {
    guard try isAsked(in: change), widens(from: old, to: new) else { return }
    throw HTTPProblem(
      .conflict, "The company asks two people for rules that let more through: write a draft, which another publishes.")
  }

  /// Throws a problem unless a draft that lets more through is published by another person than who wrote it. Both signed
  /// in, and who wrote it may still change the policy.
  static func demandAnother(than author: String?, from old: [Rule], to new: [Rule], in change: Change) throws {
    guard try isAsked(in: change), widens(from: old, to: new) else { return }
    guard case .administrator = change.actor, let author = author.flatMap(Actor.init),
      case .administrator(let id) = author,
      author != change.actor,
      try change.transaction.administrator(tenant: change.tenant, id: id)?.role.permissions.contains(.changePolicy)
        == true
    else {
      throw HTTPProblem(
        .forbidden, "The company asks two people, who sign in themselves: another one than who wrote this publishes it."
      )
    }
  }

  private static func isAsked(in change: Change) throws -> Bool {
    try change.transaction.tenant(id: change.tenant)?.needsTwoApprovers ?? true
  }
}
