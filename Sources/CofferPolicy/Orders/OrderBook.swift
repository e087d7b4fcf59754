internal import CofferCrypto

/// What a device remembers of its company's orders, so that it carries each one out once, whatever is sent again.
///
/// A value without files: the container keeps it sealed. An order passes ``admit(_:for:delegations:)`` and no other way; it
/// is noted as begun before anything is done, and answered with its signed receipt after that. Times are seconds since
/// 1970.
public struct OrderBook: Codable, Hashable, Sendable {
  /// Orders that are remembered at a time. While so many have not ended, further ones wait: what cannot be remembered
  /// could be carried out twice.
  public static let maximumCount = 2_000

  private struct Entry: Codable, Hashable, Sendable {
    let kind: DeviceCommand.Kind
    let notAfter: Int64
    /// SHA-256 of the clearing that it carries, in lower-case hexadecimal.
    var clearing: String?
    /// Absent while it is being carried out.
    var receipt: String?
    /// The company has the receipt.
    var isDelivered = false
  }

  /// What is to be done with an order that the company gave.
  public enum Admission: Hashable, Sendable {
    /// It was never seen here.
    case new(DeviceCommand)
    /// It was begun before, and answered or not; it is not carried out again.
    case known
    /// Too many orders are remembered; it may be admitted later.
    case full
  }

  private var entries: [String: Entry] = [:]

  public init() {}

  /// **The choke point of orders.** Verifies who gave the order, to whom, by which kind of key, and until when; and says
  /// whether it was seen before.
  ///
  /// The time is the company's: the latest that it signed, that of the status by which it confirmed the policy just now
  /// included. So neither a device whose clock is set back carries out an order that has ended, nor does one that is set
  /// ahead escape an order; and a status that was signed for an earlier time brings no order back.
  ///
  /// - Parameters:
  ///   - text: the order as a compact JWS.
  ///   - enrolment: just confirmed; ``PolicyRefusal/unconfirmed`` otherwise.
  ///   - delegations: what the server sent of them. Only one that the pinned root key signed, for this company and for
  ///     wiping, lets a key sign a wipe.
  public func admit(
    _ text: String, for enrolment: Enrolment, delegations: [String]
  ) throws(PolicyRefusal) -> Admission {
    guard let confirmed = enrolment.lastStatus?.time else { throw .unconfirmed }
    let now = max(confirmed, enrolment.trustedTime)
    guard text.utf8.count <= Self.maximumSize else { throw .oversize }
    let keyID = try SignedDocument.claimedKeyID(text, as: .command)
    let delegation = delegations.lazy.filter { $0.utf8.count <= Self.maximumSize }.compactMap { text in
      try? SignedDelegation(verifying: text, root: enrolment.root, tenant: enrolment.tenant)
    }.first { delegation in
      VerifyingKey(text: delegation.delegation.key)?.keyID == keyID && delegation.delegation.use == .wipe
    }
    let command = try SignedCommand(
      verifying: text, device: enrolment.device, keyset: enrolment.keyset.keyset, delegation: delegation, now: now
    ).command
    if entries[command.id] != nil { return .known }
    // A wipe needs no memory: it leaves nothing to carry it out on again.
    return entries.count < Self.maximumCount || command.kind == .wipe ? .new(command) : .full
  }

  /// Bytes of an order or a delegation.
  static let maximumSize = 16 << 10

  /// Notes that the order is going to be carried out: stored before anything is done.
  public mutating func begin(_ command: DeviceCommand) {
    let clearing = command.clearing.flatMap { Base64URL.decode($0) }.map { hexadecimal(Digest.sha256($0)) }
    entries[command.id] = Entry(kind: command.kind, notAfter: command.notAfter, clearing: clearing)
  }

  /// Notes how an order that was begun has ended: stored before the receipt is sent.
  public mutating func answer(_ order: String, receipt: String) { entries[order]?.receipt = receipt }

  /// The company has the receipt.
  public mutating func deliver(_ order: String) { entries[order]?.isDelivered = true }

  /// The orders that were begun and are not answered: whoever carried them out has ended meanwhile.
  ///
  /// - Returns: with each, the SHA-256 of the clearing that it carries, in lower-case hexadecimal.
  public var interrupted: [(order: String, kind: DeviceCommand.Kind, clearing: String?)] {
    entries.filter { $0.value.receipt == nil }.map { ($0.key, $0.value.kind, $0.value.clearing) }.sorted { $0.0 < $1.0 }
  }

  /// The orders whose receipt the company does not have yet.
  public var undelivered: [(order: String, receipt: String)] {
    entries.compactMap { id, entry in entry.isDelivered ? nil : entry.receipt.map { (id, $0) } }.sorted { $0.0 < $1.0 }
  }

  /// Forgets the orders that ended before `time`, by the company's clock, once the company has their receipts: whoever
  /// sends them again is refused for their age.
  public mutating func forget(endedBefore time: Int64) {
    entries = entries.filter { $0.value.notAfter >= time || !$0.value.isDelivered }
  }
}
