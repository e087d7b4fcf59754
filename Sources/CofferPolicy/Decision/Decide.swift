/// Decides `request` by `policy`. A pure function of its arguments.
///
/// What nothing permits is refused. A `forbid` beats every permission, and one that cannot be evaluated denies. The
/// order of apps and rules has no influence. For the owner, the settings decide; for an app, its approvals and the
/// rules. An app is approved by bundle id *and* team *and*, where the approval pins one, the team's key; a rule
/// permits only apps that are approved.
public func decide(_ request: Request, policy: Policy, context: DecisionContext) -> Decision {
  let evaluation = Evaluation(request: request, policy: policy, context: context)
  let verdict = evaluation.verdict()
  return Decision(
    reason: verdict.reason, rules: verdict.rules.sorted(), revision: policy.revision,
    sentence: evaluation.sentence(verdict), warning: evaluation.warning(verdict))
}

struct Verdict {
  let reason: Decision.Reason
  let rules: [String]
}

extension Evaluation {
  /// The first refusal that applies, from the most general to the most particular; otherwise the permission.
  func verdict() -> Verdict {
    if context.policyAge > policy.grace.blockAfter { return Verdict(reason: .graceEnded, rules: ["grace"]) }
    return contentRefusal() ?? forbidRefusal() ?? classificationRefusal() ?? (app.map(verdict) ?? ownerVerdict())
  }

  /// The owner's own files may be of any type; an app gets only what is what it says it is.
  private func contentRefusal() -> Verdict? {
    guard app != nil, let agreement else { return nil }
    switch agreement {
    case .agrees: return nil
    case .unknown: return Verdict(reason: .contentUnknown, rules: ["content"])
    case .disagrees: return Verdict(reason: .contentDisagrees, rules: ["content"])
    }
  }

  private func forbidRefusal() -> Verdict? {
    let matches = policy.rules.filter { $0.effect == .forbid }.map { ($0.id, match($0)) }.filter { $0.1 != .no }
    if matches.isEmpty { return nil }
    let isForbidden = matches.contains { $0.1 == .yes }
    return Verdict(reason: isForbidden ? .forbidden : .ruleFailed, rules: matches.map(\.0))
  }

  private func classificationRefusal() -> Verdict? {
    guard let label = request.file?.classification, !policy.classifications.contains(where: { $0.id == label }) else {
      return nil
    }
    return Verdict(reason: .classificationUnknown, rules: ["default"])
  }

  private func ownerVerdict() -> Verdict {
    let isAllowed = policy.settings.ownerActions.contains(request.action)
    return Verdict(reason: isAllowed ? .permitted : .ownerActionNotAllowed, rules: ["settings:ownerActions"])
  }

  private func verdict(for app: RequestingApp) -> Verdict {
    let named = policy.apps.filter { $0.identity == app.identity }
    if named.isEmpty { return Verdict(reason: .appNotApproved, rules: ["default"]) }
    let keyed = named.filter { $0.teamKey == nil || $0.teamKey == app.teamKey }
    if keyed.isEmpty { return Verdict(reason: .teamKeyMismatch, rules: named.map(\.ruleID)) }
    let held = keyed.filter { app.tier >= $0.tier && ($0.tier != .filtered || policy.settings.allowFilteredTier) }
    if held.isEmpty { return Verdict(reason: .tierTooWeak, rules: keyed.map(\.ruleID)) }

    let approvals = held.filter(permits).map(\.ruleID)
    let rules = policy.rules.filter { $0.effect == .permit && match($0) == .yes }.map(\.id)
    if approvals.isEmpty && rules.isEmpty { return Verdict(reason: .notPermitted, rules: held.map(\.ruleID)) }
    return Verdict(reason: .permitted, rules: approvals + rules)
  }

  private func permits(_ approval: AppApproval) -> Bool {
    guard let own = request.file?.content.fileExtension else { return false }
    return approval.actions.contains(request.action) && approval.extensions.contains(own)
  }
}
