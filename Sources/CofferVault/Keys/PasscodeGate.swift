internal import CofferCrypto
internal import CofferKeys
internal import CofferSystem

/// The one way to a derivation from a passcode: counts the attempt durably before it, and refuses while a delay lasts.
///
/// Each call runs under the key store's lock. A derivation runs between ``begin()`` and one of the two ends, outside of
/// it: what is not known yet delays as a wrong one does, so that parallel guesses cannot race, and one that is killed
/// stays counted. Nobody learns an outcome before it is stored, so that whoever kills each try before that learns nothing
/// and waits an hour for the next; and what was never proved wrong destroys nothing.
struct PasscodeGate {
  let keyStore: any KeyStore
  let vault: VaultID
  let device: DeviceKeys
  let time: any TimeSource
  /// Whether the vault is to be destroyed after ten passcodes that were proved wrong.
  let isWiping: Bool

  /// An attempt that was counted.
  struct Attempt {
    fileprivate let before: AttemptRecord
    fileprivate let counted: AttemptRecord
  }

  /// What follows of the record as it is.
  enum Verdict: Equatable {
    case open
    case delayed(seconds: UInt64)
    /// Ten were proved wrong: no derivation follows.
    case spent
  }

  func verdict() throws -> Verdict {
    let record = try settled()
    if isWiping, record.failureCount >= PasscodeDelays.wipingCount { return .spent }
    let remaining = record.remaining(at: time.sinceBoot())
    return remaining > 0 ? .delayed(seconds: remaining) : .open
  }

  /// Counts an attempt. Only where the verdict is `open`.
  func begin() throws -> Attempt {
    let before = try settled()
    var record = before
    record.begin(at: time.sinceBoot())
    try write(record)
    return Attempt(before: before, counted: record)
  }

  /// The passcode was right: nothing is counted any more.
  func succeed() throws { try write(AttemptRecord()) }

  /// The passcode was wrong, which is stored before anyone is told. The same one again was counted for nothing; another
  /// stays counted, and is proved from now on.
  func fail(_ attempt: Attempt, mark: [UInt8]) throws -> Verdict {
    var record = try settled()
    if record.marks.contains(where: { equalInConstantTime($0, mark) }) {
      record.forget(attempt)
    } else {
      record.settle(isProvedWrong: true)
      record.remember(mark)
    }
    try write(record)
    return try verdict()
  }

  /// Nothing was derived, so that nobody can have learned anything.
  func takeBack(_ attempt: Attempt) throws {
    var record = try settled()
    record.forget(attempt)
    try write(record)
  }

  /// What is counted.
  func record() throws -> AttemptRecord { try settled() }

  /// The record, with a delay that begins now where the record cannot say when it began. One that is missing or altered
  /// counts as the longest delay, so that taking it away gains nothing: there is one from the vault's making on.
  private func settled() throws -> AttemptRecord {
    let moment = time.sinceBoot()
    let bytes = try keyStore.read(.attempts, of: vault)?.withUnsafeBytes { Array($0) }
    guard let bytes, let record = try? AttemptRecord(decoding: bytes, key: device.attempts) else {
      var assumed = AttemptRecord()
      assumed.failureCount = PasscodeDelays.assumedCount
      assumed.start = moment
      try write(assumed)
      return assumed
    }
    guard let restarted = record.restarted(at: moment) else { return record }
    try write(restarted)
    return restarted
  }

  private func write(_ record: AttemptRecord) throws {
    try keyStore.write(record.secretBytes(key: device.attempts), as: .attempts, of: vault)
  }
}

extension AttemptRecord {
  /// As if the attempt had not been counted.
  fileprivate mutating func forget(_ attempt: PasscodeGate.Attempt) {
    if self == attempt.counted {
      self = attempt.before
    } else {
      // Others were counted meanwhile, and their delay stays.
      settle(isProvedWrong: false)
    }
  }
}
