/// What a person or a program of a company's administration is: see ``permissions``.
public enum Role: String, CaseIterable, Codable, Sendable {
  /// Everything: administrators, tokens and keys too.
  case owner
  /// Policy, apps and devices.
  case editor
  /// Reads, and changes nothing.
  case auditor
}
