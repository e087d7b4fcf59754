/// What a person or a program of a company's administration may do.
public enum Role: String, CaseIterable, Sendable {
  case owner, editor, auditor

  /// Whether the role may change policy; every role may read it.
  public var mayChange: Bool { self != .auditor }
}
