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

  /// What happened to the keys of the vault without a decision.
  static func event(_ event: DeviceEvent) -> (name: String, meaning: String) {
    switch event {
    case .escrowKeyAdded: ("Sealed to your escrow key", "Whoever holds that key can let the person in again.")
    case .escrowKeyRemoved: ("No longer sealed to an escrow key", "Copies from before still open with that key.")
    case .escrowKeyUsed:
      ("Opened with the escrow key", "Somebody had the private key at the device, and set a new passcode.")
    case .passcodeCleared: ("Passcode cleared", "For an hour, whoever has the code may set a new one.")
    case .clearingUsed: ("New passcode set with the code", "The clearing is used up.")
    case .escrowRecordMissing:
      ("Its record of escrow was gone", "Uses of your escrow key before this may be missing here.")
    }
  }

  static func actor(_ actor: String, _ names: PolicyNames) -> String {
    switch actor {
    case "owner": "the person"
    case "company": "the company"
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
