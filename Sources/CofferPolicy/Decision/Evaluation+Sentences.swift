/// What people read. No sentence holds a file name.
extension Evaluation {
  func sentence(_ verdict: Verdict) -> String {
    if verdict.reason == .permitted { return "\(subject) is permitted by \(list(verdict.rules))." }
    return "\(subject) is refused: \(explanation(verdict)) \(advice(verdict.reason))"
  }

  func warning(_ verdict: Verdict) -> String? {
    guard verdict.reason == .permitted, context.policyAge > policy.grace.warnAfter else { return nil }
    let hours = max(1, (policy.grace.blockAfter - context.policyAge) / 3600)
    return "The policy was last confirmed \(context.policyAge / 3600) hours ago. "
      + "Connect to your company's server within \(hours) hours, or everything will be refused."
  }

  private var subject: String {
    let type = request.file?.content.fileExtension.flatMap { PolicyText.isExtension($0) ? " (.\($0))" : nil } ?? ""
    let verb = "\(request.action.rawValue)\(type)"
    guard let app else { return "The action \(verb)" }
    return "The action \(verb) with \(PolicyText.isApp(app.identity) ? app.identity.bundleId : "this app")"
  }

  private func explanation(_ verdict: Verdict) -> String {
    switch verdict.reason {
    case .permitted: ""
    case .graceEnded: "the company has not confirmed its policy for \(context.policyAge / 3600) hours."
    case .contentUnknown: "the file is of a type that the policy does not know."
    case .contentDisagrees: "the file's content is not what its extension says."
    case .forbidden: "it is forbidden by \(list(verdict.rules))."
    case .ruleFailed: "this device cannot tell whether it is forbidden by \(list(verdict.rules))."
    case .classificationUnknown: "the file has a classification that the policy does not know."
    case .ownerActionNotAllowed: "the company does not allow it to the device's owner."
    case .appNotApproved: "the app, or the team it comes from, is not approved."
    case .teamKeyMismatch: "the app is not signed with the key of the approved team."
    case .tierTooWeak: "the app cannot be held to it as strongly on this device as the company asks."
    case .notPermitted: "the app is approved, but not for this action and this type of file."
    case .policyMissing: "the policy is missing."
    }
  }

  private func advice(_ reason: Decision.Reason) -> String {
    switch reason {
    case .graceEnded: "Connect to your company's server and refresh the policy."
    case .contentUnknown, .contentDisagrees: "Give the file the extension of what it is, or ask your administrator."
    case .appNotApproved, .notPermitted, .ownerActionNotAllowed: "Your administrator can approve it."
    case .teamKeyMismatch: "Do not use this copy of the app, and tell your administrator."
    default: "Ask your administrator."
    }
  }

  private func list(_ rules: [String]) -> String {
    let shown = rules.sorted().prefix(5).joined(separator: ", ")
    return rules.count > 5 ? "\(shown) and \(rules.count - 5) more" : shown
  }
}
