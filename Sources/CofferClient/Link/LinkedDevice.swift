public import CofferAPI
public import CofferCrypto
public import CofferPolicy

/// What a link works for: a device that belongs to a company, with all that it keeps.
///
/// Calls come one at a time, and may take their time. What they throw ends the link's connection, and the next one tries
/// again.
public protocol LinkedDevice: Sendable {
  /// The enrolment as it is stored, also where it is older than its anchor.
  func enrolment() throws -> Enrolment
  /// Nothing can be stored, as in a copy that is older than what the device has seen: it hears of its company all the same,
  /// and carries out what takes something away.
  var isReadOnly: Bool { get }
  /// The key that proves this device to its company.
  func deviceKey() throws -> SigningKey
  /// Stores a newer state of the enrolment, and lets it hold: what policy no longer allows ends before this returns.
  func take(_ enrolment: Enrolment) throws
  /// What the device says of itself with this enrolment.
  func report(_ enrolment: Enrolment) throws -> DeviceReport

  /// The orders that it remembers.
  func orders() throws -> OrderBook
  /// Stores them durably.
  func keep(_ orders: OrderBook) throws
  /// Carries out an order that the book has as begun. A `refresh` is carried out by the link itself.
  func carryOut(_ order: DeviceCommand) throws -> OrderOutcome
  /// Whether it has taken the clearing with this SHA-256, in lower-case hexadecimal, whatever became of that.
  func hasTaken(clearing digest: String) -> Bool
  /// Destroys everything. The receipt, which says so, is kept first, outside of what is destroyed; it is sent once
  /// nothing is left, and not by the link, which ends.
  func wipe(receipt: String) throws

  /// Decisions that the company does not have yet, the oldest first: at most 500, durable here.
  func undeliveredDecisions() throws -> [DecisionsRequest.Entry]
  /// The company has all up to this number, as far as it ever will; and without a gap what is up to `complete`.
  func noteDecisions(deliveredThrough number: Int64, companyHas complete: Int64) throws
}

/// How an order ended.
public enum OrderOutcome: Hashable, Sendable {
  case done
  /// It could not be carried out; why, for people.
  case failed(String)
  /// The device does not do this; why, for people.
  case refused(String)
  /// Done, once these lines of the device's log have been uploaded.
  case upload([String])
}

/// What a link tells those who watch it.
public enum LinkEvent: Hashable, Sendable {
  /// It hears of changes from now on.
  case connected
  /// The connection ended, or there was none; the next one is tried after so many seconds.
  case disconnected(ClientError?, retryAfter: Double)
  /// A policy holds that did not hold before.
  case applied(revision: Int64)
  /// The company confirmed its policy.
  case confirmed(revision: Int64)
  case order(DeviceCommand.Kind, CommandReceipt.Outcome)
  /// An order that was not the company's for this device, or not in force. It was not carried out, and not answered.
  case orderRefused(PolicyRefusal)
  /// The company's audit is not the one that this device has seen.
  case auditFault(AuditFault)
  /// Everything is destroyed; the link has ended.
  case wiped
}
