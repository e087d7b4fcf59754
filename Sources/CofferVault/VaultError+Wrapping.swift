internal import CofferCrypto
internal import CofferFiles
internal import CofferKeys
internal import CofferSystem
internal import GRDB

extension VaultError {
  /// The vault's error for whatever a lower room threw.
  static func wrapping(_ error: any Error) -> VaultError {
    switch error {
    case let error as VaultError: return error
    case let error as InvalidName: return .invalidName(error)
    case let error as SystemError: return error.isFull ? .full : .system(error)
    case let error as KeyStoreError:
      if case .system(let cause) = error, cause.isFull { return .full }
      if case .nothingKept = error { return .deviceSecretMissing }
      return .keyStore(error)
    case let error as RNCryptorError: return .rncryptor(error)
    case CryptoError.noMemory(let byteCount): return .noMemory(byteCount: byteCount)
    case is CryptoError, is MalformedBytes: return .damaged(what: "a sealed record")
    case let error as DatabaseError:
      switch error.resultCode {
      case .SQLITE_FULL: return .full
      // SQLITE_AUTH: of ``CompilationGuard``, which finds another schema.
      case .SQLITE_CORRUPT, .SQLITE_NOTADB, .SQLITE_SCHEMA, .SQLITE_AUTH, .SQLITE_TOOBIG:
        return .damaged(what: "the index")
      case .SQLITE_BUSY, .SQLITE_LOCKED: return .inUse(holder: nil)
      default: return .database(error.extendedResultCode.rawValue)
      }
    default: return .damaged(what: "an unknown part")
    }
  }

  /// The disk, the process or the system lacked room for it at that moment.
  var isOfRoom: Bool {
    switch self {
    case .full: true
    case .system(let error), .keyStore(.system(let error)): error.isShortage
    default: false
    }
  }

  /// Runs `body` and gives its failure this module's type.
  static func catching<Result>(_ body: () throws -> Result) throws(VaultError) -> Result {
    do { return try body() } catch { throw wrapping(error) }
  }
}

extension Result where Failure == VaultError {
  /// See ``VaultError/isOfRoom``.
  var isOfRoom: Bool {
    if case .failure(let error) = self { error.isOfRoom } else { false }
  }
}
