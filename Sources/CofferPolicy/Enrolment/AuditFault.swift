/// That a company's audit is not the one that this device has seen: it went back, or has another history. A device is a
/// witness of it, and keeps what it saw first.
public struct AuditFault: Codable, Hashable, Sendable {
  /// The newest entry that the device had seen.
  public let seen: AuditMark
  /// What it was shown later; absent where nothing was.
  public let shown: AuditMark?
  /// When it was shown, by the company's clock, in seconds since 1970.
  public let time: Int64

  /// For people.
  public var sentence: String {
    let seen = "entry \(self.seen.number), \(self.seen.hash.prefix(16))…"
    guard let shown else { return "The company's audit is gone: this device has seen \(seen)." }
    return shown.number < self.seen.number
      ? "The company's audit went back to entry \(shown.number): this device has seen \(seen)."
      : "The company's audit has another entry \(shown.number) than this device has seen: \(seen)."
  }
}

extension Enrolment {
  /// Holds what a status says of the company's audit against what was seen before. Hashes alone tell that an audit went
  /// back or that one entry is another; whether a longer one goes on from what was seen, an export shows.
  mutating func witness(_ status: Status) {
    guard let seen = auditMark else {
      auditMark = status.audit
      return
    }
    if let shown = status.audit, shown.number > seen.number {
      auditMark = shown
      return
    }
    // The first one stays: what comes after it is another history.
    guard status.audit != seen, auditFault == nil else { return }
    auditFault = AuditFault(seen: seen, shown: status.audit, time: status.time)
  }
}
