internal import CofferCrypto
internal import Foundation

/// One thing that somebody did in a company's administration, as the audit keeps it. It holds no secret.
public struct AuditEntry: Codable, Hashable, Sendable {
  /// Counts up from 1 without gaps.
  public let number: Int64
  /// Seconds since 1970.
  public let time: Int64
  public let tenant: String
  /// ``Actor``.
  public let actor: String
  /// ``AuditAction``.
  public let action: String
  /// The id of what it was done to.
  public let subject: String?
  public let details: [String: String]

  /// The details that hold SHA-256, in lower-case hexadecimal, of what was changed: as it was, and as it is since.
  public static let before = "before"
  public static let after = "after"

  public init(
    number: Int64, time: Int64, tenant: String, actor: Actor, action: AuditAction, subject: String?,
    details: [String: String]
  ) {
    self.number = number
    self.time = time
    self.tenant = tenant
    self.actor = actor.description
    self.action = action.rawValue
    self.subject = subject
    self.details = details
  }

  /// The bytes that are hashed and kept: JSON with sorted keys and no white space.
  public var canonical: [UInt8] {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    guard let bytes = try? encoder.encode(self) else { preconditionFailure("an audit entry does not encode") }
    return Array(bytes)
  }
}

/// What can be done, as the audit names it.
public enum AuditAction: String, CaseIterable, Sendable {
  case tenantCreated = "tenant.created"
  case administratorCreated = "administrator.created"
  case administratorChanged = "administrator.changed"
  case administratorRemoved = "administrator.removed"
  case invitationCreated = "invitation.created"
  case invitationRevoked = "invitation.revoked"
  case signedIn = "session.started"
  /// Attempts to sign in to an account that were refused, counted.
  case signInsRefused = "session.refused"
  case signedOut = "session.ended"
  case passwordChanged = "password.changed"
  case secondFactorAdded = "second-factor.added"
  case secondFactorRemoved = "second-factor.removed"
  case tokenCreated = "token.created"
  case tokenRevoked = "token.revoked"
  case appRequested = "app.requested"
  case appApproved = "app.approved"
  case appChanged = "app.changed"
  case appRevoked = "app.revoked"
  case appRemoved = "app.removed"
  case settingsChanged = "settings.changed"
  case resourceCreated = "resource.created"
  case resourceChanged = "resource.changed"
  case resourceRemoved = "resource.removed"
  case draftPublished = "draft.published"
  case revisionRestored = "revision.restored"
  case policyPublished = "policy.published"
  case rootKeyExported = "root-key.exported"
  case keysRotated = "keys.rotated"
  case keyDelegated = "key.delegated"
  case enrollmentCreated = "enrollment.created"
  case enrollmentRevoked = "enrollment.revoked"
  case deviceEnrolled = "device.enrolled"
  case deviceChanged = "device.changed"
  case deviceRemoved = "device.removed"
  case commandQueued = "command.queued"
  case commandAnswered = "command.answered"
  case commandCancelled = "command.cancelled"
  case auditExported = "audit.exported"
}

/// An entry as it is stored: its exact bytes, and the hash that chains it to the one before.
public struct AuditRecord: Hashable, Sendable {
  public let number: Int64
  public let entry: [UInt8]
  public let hash: [UInt8]

  public init(number: Int64, entry: [UInt8], hash: [UInt8]) {
    self.number = number
    self.entry = entry
    self.hash = hash
  }

  /// What stands before the first entry.
  public static let genesis = [UInt8](repeating: 0, count: Digest.byteCount)

  /// `SHA-256(previous ‖ entry)`.
  public static func hash(previous: [UInt8], entry: [UInt8]) -> [UInt8] { Digest.sha256(previous + entry) }
}
