public import CofferAPI
internal import CofferPolicy

extension DeviceReport {
  /// Throws a problem that names the field that is not valid.
  func check() throws {
    for (field, text) in [("osVersion", osVersion), ("version", version)] {
      guard text.map({ PolicyText.isName($0) && $0.utf8.count <= 64 }) ?? true else {
        throw HTTPProblem.invalid(field, "has 1 to 64 bytes and no control characters")
      }
    }
    guard appliedRevision.map({ $0 > 0 }) ?? true else { throw HTTPProblem.invalid("appliedRevision", "is at least 1") }
    guard appliedDigest.map({ $0.utf8.count == 64 && PolicyText.isIdentifier($0) }) ?? true else {
      throw HTTPProblem.invalid("appliedDigest", "is SHA-256 in hexadecimal")
    }
    guard settings.map({ $0.count <= 100 && $0.keys.allSatisfy(PolicyText.isIdentifier) }) ?? true else {
      throw HTTPProblem.invalid("settings", "are at most 100")
    }
    let isAuditWell = audit.map { audit in
      audit.number > 0 && audit.hash.utf8.count == 64 && PolicyText.isIdentifier(audit.hash)
        && audit.fault.map(PolicyText.isName) ?? true
    }
    guard isAuditWell ?? true else {
      throw HTTPProblem.invalid("audit", "is a number, SHA-256 in hexadecimal and a reason")
    }
    guard escrow.map(\.isWellFormed) ?? true else {
      throw HTTPProblem.invalid("escrow", "has a part of another length than it must have")
    }
  }
}

/// What the server knows of a device beside its key.
public struct DeviceState: Sendable {
  /// When it last signed in or reported, in seconds since 1970.
  public var lastSeenAt: Int64?
  public var report: DeviceReport?
  /// Seconds since 1970.
  public var reportedAt: Int64?
  /// Ids of groups.
  public var groups: [String]

  public init(
    lastSeenAt: Int64? = nil, report: DeviceReport? = nil, reportedAt: Int64? = nil, groups: [String] = []
  ) {
    self.lastSeenAt = lastSeenAt
    self.report = report
    self.reportedAt = reportedAt
    self.groups = groups
  }
}

/// A decision that a device recorded and sent.
public struct DeviceDecision: Sendable {
  /// The device's own count, from 1 without gaps: a number that is missing is an entry that was kept back or lost.
  public let number: Int64
  /// JSON as the device wrote it.
  public let entry: String
  /// Seconds since 1970.
  public let receivedAt: Int64

  public init(number: Int64, entry: String, receivedAt: Int64) {
    self.number = number
    self.entry = entry
    self.receivedAt = receivedAt
  }
}
