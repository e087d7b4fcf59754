/// That a company's audit is not the one that this device has seen: it went back, or has another history. A device is a
/// witness of it, and keeps what it saw first.
public struct AuditFault: Codable, Hashable, Sendable {
  /// The newest entry that the device had seen.
  public let seen: AuditMark
  /// What it was shown later; absent where nothing was.
  public let shown: AuditMark?
  /// When it was shown, by the company's clock, in seconds since 1970.
  public let time: Int64
  /// The epoch of the keys that showed both; absent in what earlier versions stored.
  public internal(set) var epoch: Int64?

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
  ///
  /// A new epoch begins a new mark: whoever had stolen an earlier key may have shown anything. A fault stays until there is
  /// one of a later epoch.
  mutating func witness(_ status: Status) {
    let epoch = keyset.keyset.epoch
    if let auditEpoch, auditEpoch < epoch { auditMark = nil }
    if auditEpoch == nil { auditFault?.epoch = epoch }
    auditEpoch = epoch
    guard let seen = auditMark else {
      auditMark = status.audit
      return
    }
    if let shown = status.audit, shown.number > seen.number {
      auditMark = shown
      return
    }
    // The first one stays: what comes after it is another history.
    guard status.audit != seen else { return }
    note(AuditFault(seen: seen, shown: status.audit, time: status.time, epoch: epoch))
  }

  /// What a company's export is held against: the first mark that was not met again, or the newest.
  public var auditWitness: AuditMark? {
    guard let auditFault, auditFault.epoch ?? keyset.keyset.epoch == keyset.keyset.epoch else { return auditMark }
    return auditFault.seen
  }

  /// Takes over what `held` has seen of the audit, where this value was made beside it and not of it.
  public mutating func keepWitness(of held: Enrolment) {
    if let fault = held.auditFault { note(fault, isEarlier: true) }
    guard let seen = held.auditMark, let epoch = held.auditEpoch, epoch >= auditEpoch ?? epoch else { return }
    guard epoch == auditEpoch, let shown = auditMark else {
      (auditMark, auditEpoch) = (seen, epoch)
      return
    }
    if shown.number == seen.number, shown != seen {
      note(AuditFault(seen: seen, shown: shown, time: confirmedAt, epoch: epoch))
    }
    if shown.number <= seen.number { auditMark = seen }
  }

  /// The first fault of an epoch stays, and one of a later epoch takes its place.
  private mutating func note(_ fault: AuditFault, isEarlier: Bool = false) {
    let (known, new) = (auditFault?.epoch ?? 0, fault.epoch ?? 0)
    if auditFault == nil || new > known || (isEarlier && new == known) { auditFault = fault }
  }
}
