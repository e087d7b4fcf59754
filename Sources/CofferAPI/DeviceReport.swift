/// The body of `PUT /v1/device/report`: what a device says of itself. All of it is its own word.
public struct DeviceReport: Codable, Hashable, Sendable {
  /// What became of one managed setting on the device.
  public enum Treatment: String, Codable, CaseIterable, Sendable {
    /// It holds here.
    case honoured
    /// This version does not know it.
    case ignored
    /// It is known, and does not hold here.
    case refused
  }

  public var osVersion: String?
  /// Coffer's own version.
  public var version: String?
  public var isPasscodeSet: Bool?
  /// Whether keys are held by hardware, or by files alone.
  public var isProtectionAvailable: Bool?
  /// The revision that the device decides by now, and its digest.
  public var appliedRevision: Int64?
  public var appliedDigest: String?
  /// By the setting's name.
  public var settings: [String: Treatment]?
  /// When it was sent by the device's clock, in milliseconds since 1970: of two that arrive in the wrong order the server
  /// keeps the later.
  public var sentAt: Int64?
  /// For the holder of the company's escrow key, where the vault is sealed to it.
  public var escrow: EscrowReport?
  /// What the device has seen of the company's audit.
  public var audit: AuditReport?

  public init(
    osVersion: String? = nil, version: String? = nil, isPasscodeSet: Bool? = nil, isProtectionAvailable: Bool? = nil,
    appliedRevision: Int64? = nil, appliedDigest: String? = nil, settings: [String: Treatment]? = nil,
    sentAt: Int64? = nil, escrow: EscrowReport? = nil, audit: AuditReport? = nil
  ) {
    self.escrow = escrow
    self.audit = audit
    self.osVersion = osVersion
    self.version = version
    self.isPasscodeSet = isPasscodeSet
    self.isProtectionAvailable = isProtectionAvailable
    self.appliedRevision = appliedRevision
    self.appliedDigest = appliedDigest
    self.settings = settings
    self.sentAt = sentAt
  }
}

/// A device's word as a witness of its company's audit.
public struct AuditReport: Codable, Hashable, Sendable {
  /// The newest entry that it has seen, and its hash in lower-case hexadecimal.
  public var number: Int64
  public var hash: String
  /// That it was shown another audit later: what, for people.
  public var fault: String?

  public init(number: Int64, hash: String, fault: String? = nil) {
    self.number = number
    self.hash = hash
    self.fault = fault
  }
}
