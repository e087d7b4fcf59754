internal import CofferPolicy

/// What devices decided, in plain words.
enum DecisionWords {
  static func reason(_ reason: Decision.Reason) -> String {
    switch reason {
    case .permitted: "The policy allows it."
    case .graceEnded: "The device had been without news for too long."
    case .contentUnknown: "What is in the file could not be told."
    case .contentDisagrees: "What is in the file is not what its name says."
    case .forbidden: "A rule forbids it."
    case .ruleFailed: "A rule that may forbid it could not be evaluated."
    case .classificationUnknown: "The file’s classification is not one of the policy."
    case .ownerActionNotAllowed: "The settings do not let the person do it."
    case .appNotApproved: "The app is not approved."
    case .teamKeyMismatch: "The app is signed by another team than the approval says."
    case .tierTooWeak: "The device cannot hold the app as tightly as its approval asks."
    case .notPermitted: "The app is approved, but not for this."
    case .policyMissing: "The device had no policy that it could read."
    }
  }

  static func actor(_ actor: String, _ names: PolicyNames) -> String {
    switch actor {
    case "owner": "the person"
    case "app": "an app without a usable name"
    default: names.apps.first { $0.identity.bundleId == actor }?.name ?? actor
    }
  }

  /// Such as “5 and 9 to 20”.
  static func numbers(_ runs: [ClosedRange<Int64>]) -> String {
    RuleWords.list(runs.map(numbers), "and")
  }

  static func numbers(_ run: ClosedRange<Int64>) -> String {
    run.count == 1 ? "\(run.lowerBound)" : "\(run.lowerBound) to \(run.upperBound)"
  }
}
