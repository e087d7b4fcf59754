public import CofferCrypto
public import CofferPolicy

/// Belonging to a company.
extension Container {
  public var enrolment: EnrolmentState { gate.state }

  /// What the person should hear although the gate permitted: that the policy has not been confirmed for a while.
  public var warning: String? { gate.warning }

  /// That the company's audit is not the one that this device has seen.
  public var auditFault: AuditFault? {
    switch gate.state {
    case .enrolled(let enrolment), .outdated(let enrolment): enrolment.auditFault
    case .notEnrolled, .policyMissing: nil
    }
  }

  /// Joins a company with what its server answered. Throws where the vault belongs to one already.
  public func enrol(_ enrolment: Enrolment, deviceKey: SigningKey) throws {
    try ContainerError.catching { try gate.enrol(enrolment, deviceKey: deviceKey) }
  }

  /// Takes what a refresh of the enrolment gave. Throws unless it is the same enrolment and not older.
  public func update(_ enrolment: Enrolment) throws {
    try ContainerError.catching { try gate.update(enrolment) }
  }

  /// The operating system's version, as rules compare it.
  public static var systemVersion: String { Gate.systemVersion }

  /// The key that proves this device to its company.
  public func deviceKey() throws -> SigningKey { try ContainerError.catching { try gate.deviceKey() } }
}
