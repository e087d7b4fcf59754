public import CofferPolicy

/// Whose the vault is.
public enum EnrolmentState: Sendable {
  /// Its owner's own: everything is allowed.
  case notEnrolled
  /// A company's: its policy decides.
  case enrolled(Enrolment)
  /// A company's, and what was stored of the policy is gone, damaged or older than what this device applied: everything
  /// that policy decides is refused.
  case policyMissing
}
