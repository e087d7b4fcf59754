public import CofferPolicy

/// Whose the vault is.
public enum EnrolmentState: Sendable {
  /// Its owner's own: everything is allowed.
  case notEnrolled
  /// A company's: its policy decides.
  case enrolled(Enrolment)
  /// A company's, and its policy is older than what this device applied, as in a backup that was put back: everything
  /// that policy decides is refused until a refresh has brought the present one.
  case outdated(Enrolment)
  /// A company's, and what was stored of the policy is gone or damaged: everything that policy decides is refused.
  case policyMissing
}
