internal import CofferCrypto
internal import Foundation

/// What a device decided, or what happened on it that its company's audit must have, as one link of its own chain. It holds
/// no file name.
///
/// The device counts its decisions and names in each the hash of the one before: an entry that is altered, taken out or
/// moved shows, and one that is missing is a number that is missing.
public struct DecisionRecord: Codable, Hashable, Sendable {
  /// What the first entry names as the one before.
  public static let beginning = String(repeating: "0", count: 64)

  /// The device's own count, from 1.
  public let number: Int64
  /// ``hash`` of the entry before, or ``beginning``.
  public let previous: String
  /// Seconds since 1970, by the device's clock.
  public let time: Int64
  /// `owner`, the app's bundle id, or of an event `company` or `owner`.
  public let actor: String
  /// Of a decision; absent where ``event`` is there.
  public let action: Action?
  /// Of what is no decision.
  public let event: DeviceEvent?
  /// Of the file, where it is one that policy can have.
  public let fileExtension: String?
  /// Of a decision.
  public let reason: Decision.Reason?
  /// At most ten of those that made the decision.
  public let rules: [String]
  public let revision: Int64

  public init(_ decision: Decision, of request: Request, number: Int64, previous: String, time: Int64) {
    self.number = number
    self.previous = previous
    self.time = time
    actor =
      switch request.actor {
      case .owner: "owner"
      case .app(let app): PolicyText.isApp(app.identity) ? app.identity.bundleId : "app"
      }
    action = request.action
    event = nil
    fileExtension = request.file?.content.fileExtension.flatMap { PolicyText.isExtension($0) ? $0 : nil }
    reason = decision.reason
    rules = Array(decision.rules.prefix(10))
    revision = decision.revision
  }

  /// - Parameter isByCompany: whether the company brought it about, and not the person with the device.
  public init(
    _ event: DeviceEvent, isByCompany: Bool, revision: Int64, number: Int64, previous: String, time: Int64
  ) {
    self.number = number
    self.previous = previous
    self.time = time
    self.event = event
    self.revision = revision
    actor = isByCompany ? "company" : "owner"
    action = nil
    fileExtension = nil
    reason = nil
    rules = []
  }

  /// The exact text that is kept, hashed and uploaded: JSON with sorted keys, in less than 2 KiB.
  public var text: String { String(decoding: StrictJSON.encode(self), as: UTF8.self) }

  /// Reads an entry that is exactly as this version writes it. Nil otherwise.
  public init?(text: String) {
    guard text.utf8.count <= 2048, let record = try? JSONDecoder().decode(Self.self, from: Data(text.utf8)),
      record.text == text, (record.event == nil) == (record.action != nil && record.reason != nil),
      record.event == nil || (record.action == nil && record.reason == nil)
    else { return nil }
    self = record
  }

  /// SHA-256 of an entry's text, in lower-case hexadecimal.
  public static func hash(of text: String) -> String { hexadecimal(Digest.sha256(text.utf8)) }
}

/// What is wrong with a chain of decisions, and what is missing in it.
public struct DecisionChain: Sendable {
  /// Numbers that are not there: a process was killed before it had stored what it decided, or somebody took them out.
  public private(set) var gaps: [ClosedRange<Int64>] = []
  /// The first entry that does not follow on the one before it, or is none.
  public private(set) var broken: Int64?
  public private(set) var count: Int64 = 0
  private var last: (number: Int64, hash: String)?

  private var next: Int64

  /// - Parameter first: the number that the chain begins with here; what came before has been handed over.
  public init(from first: Int64) { next = first }

  /// Adds the entry that is kept under `number`; they come in the order of their numbers.
  public mutating func add(_ number: Int64, _ text: String) {
    guard broken == nil else { return }
    count += 1
    guard let record = DecisionRecord(text: text), record.number == number, number >= next,
      last.map({ $0.hash == record.previous }) ?? true
    else {
      broken = number
      return
    }
    if number > next { gaps.append(next...(number - 1)) }
    last = (number, DecisionRecord.hash(of: text))
    next = number + 1
  }

  /// Ends the chain: the last entry must have this hash. Numbers that were used behind it are a gap that does not show yet.
  public mutating func end(hash: String) {
    guard broken == nil, let last, last.hash != hash else { return }
    broken = last.number
  }
}
