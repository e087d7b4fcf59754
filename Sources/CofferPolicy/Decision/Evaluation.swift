/// Whether something matches, when that may be impossible to tell.
enum Match: Hashable {
  case no, yes, failed

  init(_ value: Bool?) { self = value.map { $0 ? .yes : .no } ?? .failed }

  var negated: Match {
    switch self {
    case .no: .yes
    case .yes: .no
    case .failed: .failed
    }
  }

  /// All of them: one *no* decides, so that a rule for something else never fails here; then one failure does.
  /// The order of `matches` has no influence.
  static func all(_ matches: [Match]) -> Match {
    if matches.contains(.no) { return .no }
    return matches.contains(.failed) ? .failed : .yes
  }
}

/// One request before one policy.
struct Evaluation {
  let request: Request
  let policy: Policy
  let context: DecisionContext

  /// Absent when the request concerns no file.
  var agreement: ContentType.Agreement? { request.file?.content.agreement(adding: policy.fileTypes) }

  func match(_ rule: Rule) -> Match {
    var matches: [Match] = [
      scope(rule.actions) { Match($0.contains(request.action)) },
      scope(rule.apps) { Match(app.map { $0.identity }.map($0.contains) ?? false) },
      scope(rule.groups) { groups in Match(request.principal.groups.map { !$0.isDisjoint(with: groups) }) },
      scope(rule.classifications) { classifications in
        guard let file = request.file else { return .failed }
        return Match(file.classification.map(classifications.contains) ?? false)
      },
      scope(rule.extensions) { extensions in
        // A rule about types says nothing certain about a file whose type is not established.
        guard agreement == .agrees, let own = request.file?.content.fileExtension else { return .failed }
        return Match(extensions.contains(own))
      },
    ]
    matches += rule.conditions.map(match)
    return .all(matches)
  }

  private func scope<Value>(_ values: [Value]?, _ match: ([Value]) -> Match) -> Match { values.map(match) ?? .yes }

  private func match(_ condition: Condition) -> Match {
    let match = match(condition.test)
    return condition.isNegated ? match.negated : match
  }

  private func match(_ test: Condition.Test) -> Match {
    switch test {
    case .deviceUnlocked: Match(context.isDeviceUnlocked)
    case .policyAgeAtMost(let seconds): seconds < 0 ? .failed : Match(context.policyAge <= seconds)
    case .osVersion(let versions): Match(versions.contains(context.osVersion))
    case .appVersion(let versions): app.map { Match(versions.contains($0.version)) } ?? .no
    case .protectionAtLeast(let level): request.file.map { Match($0.protection >= level) } ?? .failed
    case .group(let group): Match(request.principal.groups.map { $0.contains(group) })
    case .timeWindow(let window): Match(window.contains(context.now))
    case .unknown: .failed
    }
  }

  var app: RequestingApp? {
    if case .app(let app) = request.actor { app } else { nil }
  }
}
