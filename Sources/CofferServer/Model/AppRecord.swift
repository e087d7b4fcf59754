public import CofferPolicy

/// An app as a company's administration has it: what is approved, and how far the approval is.
public struct AppRecord: Sendable {
  /// How many a company may have, of every state: twice what a policy may approve.
  static let maximumCount: Int64 = 20_000

  public enum State: String, Codable, CaseIterable, Sendable {
    /// Asked for. Nothing of it is in the policy.
    case requested
    /// In the policy.
    case approved
    /// Was in the policy, or was refused.
    case revoked
  }

  /// Somebody's yes.
  public struct Approver: Codable, Hashable, Sendable {
    /// ``Actor``.
    public var actor: String
    /// Seconds since 1970.
    public var at: Int64
    public var reason: String?

    public init(actor: String, at: Int64, reason: String?) {
      self.actor = actor
      self.at = at
      self.reason = reason
    }
  }

  public struct Details: Codable, Hashable, Sendable {
    /// What the app runs on, for people.
    public var platform: String?
    /// An older version gets nothing: a rule of the policy sees to it.
    public var minimumVersion: String?
    /// ``Actor``.
    public var requester: String?
    public var reason: String?
    public var approvers: [Approver]
    public var revokedBy: String?
    public var revocationReason: String?
    /// Of one that is asked for otherwise than it was approved: until when that held, in seconds since 1970.
    public var formerEnd: Int64?
    /// It was revoked before it was approved.
    public var wasRefused: Bool?

    public init(
      platform: String? = nil, minimumVersion: String? = nil, requester: String? = nil, reason: String? = nil,
      approvers: [Approver] = []
    ) {
      self.platform = platform
      self.minimumVersion = minimumVersion
      self.requester = requester
      self.reason = reason
      self.approvers = approvers
    }
  }

  public var approval: AppApproval
  public var state: State
  /// Seconds since 1970; from then on it counts as revoked.
  public var expiresAt: Int64?
  public var details: Details

  public init(approval: AppApproval, state: State, expiresAt: Int64?, details: Details) {
    self.approval = approval
    self.state = state
    self.expiresAt = expiresAt
    self.details = details
  }

  static let versionRulePrefix = "minimum-version."

  /// Until when it is approved, or was the last time; nil is without end.
  var approvedUntil: Int64? { state == .requested || details.wasRefused == true ? details.formerEnd : expiresAt }

  /// The rule that keeps older versions out.
  var versionRule: Rule? {
    details.minimumVersion.map { version in
      Rule(
        id: Self.versionRulePrefix + approval.id, effect: .forbid, apps: [approval.identity],
        conditions: [Condition(.appVersion(VersionRange(below: version)))])
    }
  }
}
