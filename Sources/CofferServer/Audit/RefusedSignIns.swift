internal import CofferSystem
internal import Synchronization

/// Counts attempts to sign in that were refused, until they are written into the companies' audits: of an account one entry
/// when they begin, and one for each ``window`` while they last, however many there are. Attempts on accounts that are not
/// there are counted together, for the company that was named.
final class RefusedSignIns: Sendable {
  /// Seconds since the system's start between two entries about an account.
  static let window: Int64 = 15 * 60
  /// Accounts of a company that are counted apart: those beyond are counted with the absent ones. And companies.
  static let accountsOfCompany = 50
  static let capacity = 10_000

  struct Key: Hashable {
    let tenant: String
    /// The administrator's id; nil is any that is not there.
    let account: String?
  }

  /// What an entry tells.
  struct Count: Equatable {
    var refused = 0
    /// Those that came too often to be tried.
    var limited = 0
    /// Seconds since 1970.
    var first: Int64
    var last: Int64

    mutating func add(_ other: Count) {
      refused += other.refused
      limited += other.limited
      first = min(first, other.first)
      last = max(last, other.last)
    }
  }

  private struct Entry {
    /// What was not written yet.
    var count: Count?
    /// Since the system's start.
    var writtenAt: Int64?
  }

  private let entries = Mutex<[String: [String?: Entry]]>([:])

  /// Counts one attempt.
  func note(_ key: Key, isLimited: Bool, now: Int64) {
    add(Count(refused: isLimited ? 0 : 1, limited: isLimited ? 1 : 0, first: now, last: now), to: key)
  }

  /// Takes what is to be written by `uptime`, or all of it.
  func take(uptime: Int64, all: Bool = false) -> [(key: Key, count: Count)] {
    entries.withLock { entries in
      var taken: [(key: Key, count: Count)] = []
      for (tenant, accounts) in entries {
        for (account, entry) in accounts {
          let isDue = entry.writtenAt.map { uptime - $0 >= Self.window } ?? true
          guard isDue || all else { continue }
          // Without another attempt in a whole window, the next one is the first.
          entries[tenant]?[account] = entry.count.map { _ in Entry(count: nil, writtenAt: uptime) }
          if let count = entry.count { taken.append((Key(tenant: tenant, account: account), count)) }
        }
        if entries[tenant]?.isEmpty == true { entries[tenant] = nil }
      }
      return taken
    }
  }

  /// Counts again what could not be written.
  func giveBack(_ key: Key, _ count: Count) {
    add(count, to: key)
    entries.withLock { $0[key.tenant]?[key.account]?.writtenAt = nil }
  }

  var entryCount: Int { entries.withLock { $0.values.reduce(0) { $0 + $1.count } } }

  private func add(_ count: Count, to key: Key) {
    entries.withLock { entries in
      var account = key.account
      if account != nil, entries[key.tenant]?[account] == nil,
        entries[key.tenant, default: [:]].count >= Self.accountsOfCompany
      {
        account = nil
      }
      if entries[key.tenant] == nil, entries.count >= Self.capacity { return }
      var entry = entries[key.tenant]?[account] ?? Entry()
      if entry.count == nil { entry.count = count } else { entry.count?.add(count) }
      entries[key.tenant, default: [:]][account] = entry
    }
  }
}

extension PolicyServer {
  /// Writes what has been refused into the audits.
  func recordRefusedSignIns(all: Bool = false) async {
    let taken = Dictionary(grouping: refusedSignIns.take(uptime: uptime, all: all), by: \.key.tenant)
    for (tenant, counts) in taken {
      do {
        try await commit(.server, in: tenant) { change in
          for (key, count) in counts {
            try change.record(
              .signInsRefused, key.account,
              [
                "refused": "\(count.refused)", "limited": "\(count.limited)", "from": "\(count.first)",
                "until": "\(count.last)",
              ])
          }
        }
      } catch {
        for (key, count) in counts { refusedSignIns.giveBack(key, count) }
        log.error("refused sign-ins are not in the audit yet: \(error: error)")
      }
    }
  }
}
