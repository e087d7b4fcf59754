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

  /// How far the company may be ahead; what says more is not this device's count.
  private static let longestLead: Int64 = 1_000_000

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
  }

  private let vault: Vault
  private let head: Mutex<Head?>
  /// The head as the vault has it, so that nothing that differs from it is taken for stored. Only with `head` locked.
  private let stored = Mutex<Head?>(nil)

  init(_ vault: Vault) {
    self.vault = vault
    head = Mutex(nil)
  }

  /// Records a decision. What cannot be stored keeps its number, so that it is missed: a full disk decides nothing.
  func record(_ decision: Decision, of request: Request, time: Int64) {
    record { DecisionRecord(decision, of: request, number: $0, previous: $1, time: time) }
  }

  /// Records what is no decision.
  ///
  /// - Returns: whether the entry is in the vault, and durable with its next commit.
  func record(_ event: DeviceEvent, isByCompany: Bool, revision: Int64, time: Int64) -> Bool {
    record {
      DecisionRecord(event, isByCompany: isByCompany, revision: revision, number: $0, previous: $1, time: time)
    }
  }

  @discardableResult
  private func record(_ make: (_ number: Int64, _ previous: String) -> DecisionRecord) -> Bool {
    guard !vault.isReadOnly else { return false }
    return head.withLock { held in
      guard var head = loaded(held) else { return false }
      var isStored = false
      let number = head.last + 1
      let record = make(number, head.hash)
      let text = record.text
      let needsBlock = number > head.reserved
      head.last = number
      if needsBlock { head.reserved = number + Self.block - 1 }
      do {
        try vault.setSetting(Self.name(number), to: Array(text.utf8))
        head.hash = DecisionRecord.hash(of: text)
        try forgetOldest(&head)
        if needsBlock {
          try store(head)
          try vault.commitNames()
        }
        isStored = true
      } catch {}
      held = head
      return isStored
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
    return try entries(after: max(head.delivered, head.first - 1), through: head.last, limit: limit)
  }

  /// The company has everything up to `number`. Where it has more than there is here, as after a vault was put back to an
  /// older state, the count goes on behind that: a number means one decision.
  func noteDelivered(through number: Int64, companyHas complete: Int64) throws {
    try head.withLock { held in
      var head = try present(&held)
      head.delivered = max(head.delivered, min(number, head.last))
      if complete > head.last, complete - head.last <= Self.longestLead {
        for number in head.first...max(head.first, head.last) { try vault.setSetting(Self.name(number), to: nil) }
        head.first = complete + 1
        head.last = complete
        head.reserved = complete
        head.delivered = complete
      }
      while head.first <= head.delivered - Self.deliveredLimit {
        try vault.setSetting(Self.name(head.first), to: nil)
        head.first += 1
      }
      try store(head)
      try vault.commitNames()
      held = head
    }
  }

  /// All that is kept here, the oldest first.
  func all() throws -> [(number: Int64, text: String)] {
    let head = try self.head.withLock { try present(&$0) }
    return try entries(after: head.first - 1, through: head.last, limit: .max)
  }

  /// Whether the entries that are kept here follow on each other.
  func verify() throws -> DecisionChain {
    let head = try self.head.withLock { try present(&$0) }
    var chain = DecisionChain(from: head.first)
    for (number, text) in try entries(after: head.first - 1, through: head.last, limit: .max) {
      chain.add(number, text)
    }
    chain.end(hash: head.hash)
    return chain
  }

  private func entries(after: Int64, through last: Int64, limit: Int) throws -> [(number: Int64, text: String)] {
    var found: [(number: Int64, text: String)] = []
    var size = 0
    var number = after + 1
    while number <= last, found.count < limit {
      if let value = try vault.setting(Self.name(number)) {
        size += value.count
        if limit != .max, size > 256 << 10 { break }
        found.append((number, String(decoding: value, as: UTF8.self)))
      }
      number += 1
    }
    return found
  }

  private func forgetOldest(_ head: inout Head) throws {
    while head.last - max(head.delivered, head.first - 1) > Self.undeliveredLimit {
      try vault.setSetting(Self.name(head.first), to: nil)
      head.first += 1
    }
  }

  private func store(_ head: Head) throws {
    try vault.setSetting(Self.setting, to: Array(try JSONEncoder().encode(head)))
    stored.withLock { $0 = head }
  }

  private func loaded(_ held: Head?) -> Head? {
    var held = held
    return try? present(&held)
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
