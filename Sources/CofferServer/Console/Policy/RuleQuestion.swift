internal import CofferPolicy

/// A question to the simulator that a rule is about, as far as one can be made up: somebody goes on from there.
struct RuleQuestion {
  let rule: Rule
  /// Those that are approved.
  let apps: [AppRecord]
  let now: Int64

  /// - Parameter by: the policy that is asked, as ``Simulator`` names it; nil for the one in force.
  func link(by policy: String?) -> Link {
    let app = rule.apps.map { named in apps.first { named.contains($0.approval.identity) } } ?? apps.first
    let action = rule.actions?.first ?? app?.approval.actions.first ?? .openIn
    let groups =
      rule.groups?.first
      ?? rule.conditions.lazy.compactMap { condition -> String? in
        if case .group(let group) = condition.test, !condition.isNegated { group } else { nil }
      }.first
    return ("/console/simulator" as Link).asking([
      "by": policy, "app": app?.approval.id ?? "", "action": action.rawValue,
      "type": rule.extensions?.first ?? app?.approval.extensions.first ?? "pdf",
      "label": rule.classifications?.first, "group": groups, "protection": protection?.rawValue,
      "unlocked": holds { $0 == .deviceUnlocked } == false ? "no" : nil, "days": days, "version": version(ofApp: true),
      "os": version(ofApp: false), "at": time.map(SimulatorTime.text),
    ])
  }

  /// Whether the first condition of this kind has to hold; nil when there is none.
  private func holds(_ isKind: (Condition.Test) -> Bool) -> Bool? {
    rule.conditions.first { isKind($0.test) }.map { !$0.isNegated }
  }

  private var protection: ProtectionLevel? {
    for condition in rule.conditions {
      guard case .protectionAtLeast(let level) = condition.test else { continue }
      return condition.isNegated ? ProtectionLevel.none : level
    }
    return nil
  }

  private var days: String? {
    for condition in rule.conditions {
      guard case .policyAgeAtMost(let seconds) = condition.test, condition.isNegated else { continue }
      return "\(seconds / 86_400 + 1)"
    }
    return nil
  }

  private func version(ofApp: Bool) -> String? {
    for condition in rule.conditions {
      switch condition.test {
      case .appVersion(let range) where ofApp: return version(range, isWithin: !condition.isNegated)
      case .osVersion(let range) where !ofApp: return version(range, isWithin: !condition.isNegated)
      default: continue
      }
    }
    return nil
  }

  private func version(_ range: VersionRange, isWithin: Bool) -> String? {
    isWithin ? range.atLeast ?? "0" : range.below ?? "0"
  }

  /// The next time that the first window of the rule begins, or, where the rule is about other hours, ends.
  private var time: Int64? {
    for condition in rule.conditions {
      guard case .timeWindow(let window) = condition.test, window.isWellFormed else { continue }
      let local = now + Int64(window.offset) * 60
      let minute = Int64(condition.isNegated ? window.end : window.start)
      for ahead in 0..<8 {
        let day = local / 86_400 + Int64(ahead)
        // 1970-01-01 was a Thursday.
        guard window.days.contains(Int((day + 3) % 7) + 1), day * 86_400 + minute * 60 >= local else { continue }
        return day * 86_400 + minute * 60 - Int64(window.offset) * 60
      }
    }
    return nil
  }
}
