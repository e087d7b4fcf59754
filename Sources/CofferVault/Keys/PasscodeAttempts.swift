public import CofferKeys
public import CofferSystem

/// What wrong passcodes have come to.
public struct PasscodeAttempts: Sendable, Hashable {
  /// With how many more wrong passcodes the next delay begins.
  public let triesBeforeDelay: Int
  /// Seconds that the next delay lasts.
  public let nextDelay: UInt64
  /// Seconds until a passcode may be tried; 0 where one may be tried now.
  public let retryAfterSeconds: UInt64
  /// Wrong passcodes (tries that were proved wrong) that are left before the vault is destroyed; nil where it never is.
  public let triesBeforeWipe: Int?
}

extension Vault {
  /// As below, for a vault that is open.
  public var passcodeAttempts: PasscodeAttempts? {
    Self.passcodeAttempts(at: folder.path, keyStore: keyStore, files: folder.files, time: time)
  }

  /// How many passcodes may be tried, and when; nil where that cannot be known. Needs no passcode, and counts nothing.
  public static func passcodeAttempts(
    at path: String, keyStore: any KeyStore, files: FileSystem = FileSystem(), time: any TimeSource = SystemTime()
  ) -> PasscodeAttempts? {
    guard let folder = try? VaultFolder(opening: path, files: files),
      let locked = try? LockedVault(in: folder, keyStore: keyStore, time: time)
    else { return nil }
    return try? locked.withLock {
      let gate = try locked.gate(for: locked.wrapped())
      let record = try gate.record()
      let count = record.tryCount
      let tries = (1...UInt32(5)).first { PasscodeDelays.seconds(after: count &+ $0) > 0 } ?? 1
      var retry: UInt64 = 0
      if case .delayed(let seconds) = try gate.verdict() { retry = seconds }
      return PasscodeAttempts(
        triesBeforeDelay: Int(tries), nextDelay: PasscodeDelays.seconds(after: count &+ tries),
        retryAfterSeconds: retry,
        triesBeforeWipe: gate.isWiping
          ? Int(PasscodeDelays.wipingCount) - Int(min(record.failureCount, PasscodeDelays.wipingCount)) : nil)
    }
  }
}
