/// The answer to a request.
public struct Decision: Hashable, Sendable {
  /// Why, for programs.
  public enum Reason: String, Codable, CaseIterable, Hashable, Sendable {
    case permitted
    /// The company has not confirmed its policy for too long.
    case graceEnded
    case contentUnknown
    case contentDisagrees
    case forbidden
    /// A rule that may forbid this could not be evaluated.
    case ruleFailed
    case classificationUnknown
    /// The company does not let the owner do this.
    case ownerActionNotAllowed
    case appNotApproved
    /// The approval pins another team's key.
    case teamKeyMismatch
    /// The app is held less strongly here than its approval asks, or only filtered and the company does not allow it.
    case tierTooWeak
    /// The app is approved, but not for this action or this type of file.
    case notPermitted
    /// The device is enrolled and holds no policy that it can read.
    case policyMissing
  }

  public let reason: Reason
  /// The ids of the rules that made the decision, sorted. Approvals are `app:ID`; what is not a rule is `settings:…`,
  /// `grace`, `content` or `default`.
  public let rules: [String]
  /// The revision of the policy that decided; 0 when there is none.
  public let revision: Int64
  /// For the person: what was decided, why, and whom to ask. It holds no file name.
  public let sentence: String
  /// For the person, beside a permission: the policy has not been confirmed for a while.
  public let warning: String?

  public var isPermitted: Bool { reason == .permitted }

  /// What an enrolled device answers when it cannot read its policy: nothing is let out.
  public static let withoutPolicy = Decision(
    reason: .policyMissing, rules: ["default"], revision: 0,
    sentence: "Refused: this device belongs to a company, and the company's policy is missing or damaged. "
      + "Refresh the policy, or ask your administrator.", warning: nil)
}
