internal import CofferPolicy
internal import CofferSystem
internal import CofferVault
internal import Foundation
internal import Synchronization

/// The device's numbered chain of what it decided, sealed in the vault.
///
/// An entry is durable before what was decided happens, at the price of one commit for 64 entries: numbers are taken in
/// blocks that are stored first. What a killed process had not stored yet is a gap in the numbers, and never nothing.
/// Numbers that were not used are given back with each commit.
final class DecisionLog: Sendable {
  private static let setting = "decisions"
  private static let block: Int64 = 64
  /// Entries that the company does not have yet; the oldest go, and their numbers are a gap.
  private static let undeliveredLimit: Int64 = 20_000
  /// Entries that are kept here after the company has them.
  private static let deliveredLimit: Int64 = 1_000
  /// The same where the company only says that it has some of them.
  private static let claimedLimit: Int64 = 20_000

  /// How far the company may be ahead; what says more is not this device's count.
  private static let longestLead: Int64 = 1_000_000
  /// How often it may be, while entries from before are kept here: more often no vault is put back.
  private static let passedLimit = 64

  private struct Head: Codable, Equatable {
    /// The number of the newest entry, and its hash.
    var last: Int64 = 0
    var hash = DecisionRecord.beginning
    /// The highest number that may have been used.
    var reserved: Int64 = 0
    /// The company has, or has to do without, everything up to here.
    var delivered: Int64 = 0
    /// The oldest entry that is kept here.
    var first: Int64 = 1
    /// Numbers between entries that are kept here of which the company says that it has them, and this vault does not: in
    /// order. Nobody signed that, so that nothing is forgotten for it.
    var passed: [ClosedRange<Int64>]?

    /// The next number that an entry kept here may have.
    func next(after number: Int64) -> Int64 {
      let next = number + 1
      return passed?.first { $0.contains(next) }.map { $0.upperBound + 1 } ?? next
    }

    /// How many entries with numbers up to `number` may be kept here.
    func count(through number: Int64) -> Int64 {
      guard number >= first else { return 0 }
      let passed = (passed ?? []).filter { $0.lowerBound <= number }
      return number - first + 1 - passed.reduce(0) { $0 + min($1.upperBound, number) - $1.lowerBound + 1 }
    }

    /// How many entries stay that the company has, or says it has.
    var keptLimit: Int64 { (passed ?? []).isEmpty ? DecisionLog.deliveredLimit : DecisionLog.claimedLimit }

    /// Goes on behind everything that the company says it has.
    mutating func pass(through number: Int64) {
      if first > last {
        first = number + 1
      } else {
        var ranges = passed ?? []
        // One of them, where nothing was decided between.
        let isOneMore = ranges.last?.upperBound == last
        let start = isOneMore ? ranges.removeLast().lowerBound : last + 1
        passed = ranges + [start...number]
      }
      (last, reserved, delivered) = (number, number, number)
    }

    /// The oldest entry is not kept any more.
    mutating func dropFirst() {
      let next = next(after: first)
      first = next
      passed?.removeAll { $0.upperBound < next }
    }
  }

  private let vault: Vault
  private let head: Mutex<Head?>
  /// The head as the vault has it, so that nothing that differs from it is taken for stored. Only with `head` locked.
  private let stored = Mutex<Head?>(nil)

  init(_ vault: Vault) {
    self.vault = vault
    head = Mutex(nil)
  }

  /// Records a decision. What cannot be stored keeps its number, so that it is missed once more can be. A permission that
  /// could not be stored is none, and no later commit may bring it.
  ///
  /// - Returns: why it could not be, where it could not.
  func record(_ decision: Decision, of request: Request, time: Int64) -> (any Error)? {
    record(isKept: !decision.isPermitted) {
      DecisionRecord(decision, of: request, number: $0, previous: $1, time: time)
    }
  }

  /// Records what is no decision.
  ///
  /// - Returns: whether the entry is in the vault, and durable with its next commit.
  func record(_ event: DeviceEvent, isByCompany: Bool, revision: Int64, time: Int64) -> Bool {
    let failure = record(isKept: true) {
      DecisionRecord(event, isByCompany: isByCompany, revision: revision, number: $0, previous: $1, time: time)
    }
    return failure == nil
  }

  /// - Parameter isKept: what is not durable at once stays for the next commit.
  private func record(
    isKept: Bool, _ make: (_ number: Int64, _ previous: String) -> DecisionRecord
  ) -> (any Error)? {
    guard !vault.isReadOnly else { return VaultError.readOnlyDisk }
    return head.withLock { held in
      do {
        var head = try present(&held)
        let number = head.last + 1
        let record = make(number, head.hash)
        let text = record.text
        // Where a block cannot be stored, none was taken: the next entry asks for one again.
        head.last = number
        held = head
        let missed = head
        try vault.setSetting(Self.name(number), to: Array(text.utf8))
        head.hash = DecisionRecord.hash(of: text)
        try forgetOldest(&head)
        held = head
        if number > head.reserved {
          head.reserved = number + Self.block - 1
          do {
            try store(head)
            try vault.commitNames()
          } catch {
            if !isKept {
              held = missed
              try vault.setSetting(Self.name(number), to: nil)
              // Or the next process would go on from the hash of an entry that nobody has.
              try store(missed)
            }
            throw error
          }
          held = head
        }
        return nil
      } catch {
        return error
      }
    }
  }

  /// Gives back numbers that were not used, with the next commit. The newest entry's hash goes with them, also where all
  /// were used: the next process goes on from it.
  func settle() throws {
    guard !vault.isReadOnly else { return }
    try head.withLock { held in
      guard var head = held else { return }
      head.reserved = head.last
      guard head != stored.withLock({ $0 }) else { return }
      try store(head)
      held = head
    }
  }

  /// Entries behind what the company has, the oldest first; not more than `limit`, nor than fits into one upload.
  func undelivered(limit: Int) throws -> [(number: Int64, text: String)] {
    let head = try self.head.withLock { try present(&$0) }
    return try entries(of: head, after: max(head.delivered, head.first - 1), limit: limit)
  }

  /// The company has everything up to `number`. Where it has more than there is here, as after a vault was put back to an
  /// older state, the count goes on behind that: a number means one decision.
  func noteDelivered(through number: Int64, companyHas complete: Int64) throws {
    try head.withLock { held in
      var head = try present(&held)
      head.delivered = max(head.delivered, min(number, head.last))
      if complete > head.last, complete - head.last <= Self.longestLead, head.passed?.count ?? 0 < Self.passedLimit {
        head.pass(through: complete)
      }
      while head.count(through: head.delivered) > head.keptLimit { try dropFirst(&head) }
      try store(head)
      try vault.commitNames()
      held = head
    }
  }

  /// All that is kept here, the oldest first.
  func all() throws -> [(number: Int64, text: String)] {
    let head = try self.head.withLock { try present(&$0) }
    return try entries(of: head, after: head.first - 1, limit: .max)
  }

  /// Whether the entries that are kept here follow on each other.
  func verify() throws -> DecisionChain {
    let head = try self.head.withLock { try present(&$0) }
    var chain = DecisionChain(from: head.first)
    for (number, text) in try entries(of: head, after: head.first - 1, limit: .max) {
      chain.add(number, text)
    }
    chain.end(hash: head.hash)
    return chain
  }

  private func entries(of head: Head, after: Int64, limit: Int) throws -> [(number: Int64, text: String)] {
    var found: [(number: Int64, text: String)] = []
    var size = 0
    var number = head.next(after: after)
    while number <= head.last, found.count < limit {
      if let value = try vault.setting(Self.name(number)) {
        size += value.count
        if limit != .max, size > 256 << 10 { break }
        found.append((number, String(decoding: value, as: UTF8.self)))
      }
      number = head.next(after: number)
    }
    return found
  }

  private func forgetOldest(_ head: inout Head) throws {
    while head.last - max(head.delivered, head.first - 1) > Self.undeliveredLimit {
      try dropFirst(&head)
    }
  }

  private func dropFirst(_ head: inout Head) throws {
    try vault.setSetting(Self.name(head.first), to: nil)
    head.dropFirst()
  }

  private func store(_ head: Head) throws {
    try vault.setSetting(Self.setting, to: Array(try JSONEncoder().encode(head)))
    stored.withLock { $0 = head }
  }

  private func present(_ held: inout Head?) throws -> Head {
    if let held { return held }
    guard let stored = try vault.setting(Self.setting) else { return Head() }
    guard var head = try? JSONDecoder().decode(Head.self, from: Data(stored)) else {
      throw ContainerError(.damaged, "what the vault keeps of its decisions is damaged")
    }
    self.stored.withLock { $0 = head }
    // A process that was killed may have used what it had taken, and stored some of it: the newest that is there is the
    // one before the next.
    let used = max(head.last, head.reserved)
    for number in stride(from: used, to: head.last, by: -1) {
      guard let entry = try vault.setting(Self.name(number)) else { continue }
      head.hash = DecisionRecord.hash(of: String(decoding: entry, as: UTF8.self))
      break
    }
    head.last = used
    held = head
    return head
  }

  private static func name(_ number: Int64) -> String { "decision:\(number)" }
}
