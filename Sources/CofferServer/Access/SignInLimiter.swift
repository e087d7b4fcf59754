internal import CofferCrypto
internal import Synchronization

/// Slows guessing down: so many attempts for an account, and so many from an address, in each quarter of an hour.
///
/// The addresses of this machine have no limit of their own: behind a proxy they stand for everybody.
///
/// Attempts count from their beginning, so that many at once are no way around it. Accounts that do not exist are
/// counted like those that do. Time is that since the system's start: setting the clock gives nobody more attempts. Memory is bounded: when a table is full, the entry with the fewest attempts goes.
final class SignInLimiter: Sendable {
  static let window: Int64 = 15 * 60
  static let attemptsForAccount = 10
  static let attemptsFromAddress = 50
  static let capacity = 10_000

  private struct Entry {
    var count: Int
    var end: Int64
  }

  private struct Table {
    let limit: Int
    var entries: [[UInt8]: Entry] = [:]

    /// Seconds until the next attempt is allowed; nil is now.
    func wait(_ key: [UInt8], _ now: Int64) -> Int64? {
      guard let entry = entries[key], isCurrent(entry, now), entry.count >= limit else { return nil }
      return entry.end - now
    }

    mutating func count(_ key: [UInt8], _ now: Int64) {
      if let entry = entries[key], isCurrent(entry, now) {
        entries[key] = Entry(count: entry.count + 1, end: entry.end)
        return
      }
      entries[key] = nil
      if entries.count >= SignInLimiter.capacity { entries = entries.filter { isCurrent($0.value, now) } }
      if entries.count >= SignInLimiter.capacity, let least = entries.min(by: { $0.value.count < $1.value.count }) {
        entries[least.key] = nil
      }
      entries[key] = Entry(count: 1, end: now + SignInLimiter.window)
    }

    mutating func giveBack(_ key: [UInt8]) {
      guard let entry = entries[key], entry.count > 1 else {
        entries[key] = nil
        return
      }
      entries[key] = Entry(count: entry.count - 1, end: entry.end)
    }

    private func isCurrent(_ entry: Entry, _ now: Int64) -> Bool { now < entry.end }
  }

  private struct Tables {
    var accounts = Table(limit: SignInLimiter.attemptsForAccount)
    var addresses = Table(limit: SignInLimiter.attemptsFromAddress)
  }

  private let tables = Mutex(Tables())

  /// Counts an attempt at `now`, in seconds since the system's start. Returns how many seconds the caller has to wait instead, or nil when it may go on.
  func begin(account: String?, address: String, now: Int64) -> Int64? {
    let (account, address) = (account.map(Self.key), Self.source(of: address))
    return tables.withLock { tables in
      let waits = [
        account.flatMap { tables.accounts.wait($0, now) }, address.flatMap { tables.addresses.wait($0, now) },
      ]
      if let wait = waits.compactMap(\.self).max() { return wait }
      if let account { tables.accounts.count(account, now) }
      if let address { tables.addresses.count(address, now) }
      return nil
    }
  }

  /// An attempt that was right: the account's count starts anew, and the address gets this attempt back.
  func succeeded(account: String?, address: String) {
    let (account, address) = (account.map(Self.key), Self.source(of: address))
    tables.withLock { tables in
      if let account { tables.accounts.entries[account] = nil }
      if let address { tables.addresses.giveBack(address) }
    }
  }

  var entryCount: Int { tables.withLock { $0.accounts.entries.count + $0.addresses.entries.count } }

  /// What attempts from `address` are counted under; nil when they are not.
  private static func source(of address: String) -> [UInt8]? { origin(of: address).map(key) }

  /// Whom an address stands for; nil for those of this machine, where a proxy may stand for everybody.
  static func origin(of address: String) -> String? {
    LoopbackAddress.isLoopback(address) ? nil : network(of: address)
  }

  /// Of fixed size, whatever somebody typed.
  private static func key(_ text: String) -> [UInt8] { Digest.sha256(text.utf8) }

  /// Whoever has one address of IPv6 has 2⁶⁴ of them. One of IPv4 is itself, also where IPv6 has it.
  static func network(of address: String) -> String {
    let address = LoopbackAddress.unmapped(address)
    guard address.contains(":") else { return address }
    // Written without a run of zeros, of which there is one at most: "::".
    let halves = address.split(separator: "%")[0].split(separator: "::", omittingEmptySubsequences: false)
      .map { $0.split(separator: ":") }
    let last = halves.count > 1 ? halves[1] : []
    let zeros = halves.count > 1 ? max(0, 8 - halves[0].count - last.count) : 0
    return (halves[0] + Array(repeating: "0", count: zeros) + last).prefix(4).joined(separator: ":")
  }
}
