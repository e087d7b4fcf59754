internal import ArgumentParser
internal import CofferCrypto
internal import CofferServer
internal import CofferSystem
internal import Foundation

/// Turns errors into one line on standard error and an exit code of the command-line contract (sysexits).
enum Failure {
  /// Runs `body`; argument errors pass through, for they have a code and a text already.
  static func reporting(_ body: () async throws -> Void) async throws {
    do {
      try await body()
    } catch let error where error is ValidationError || error is ExitCode || error is CleanExit {
      throw error
    } catch {
      let (code, text) = describe(error)
      FileHandle.standardError.write(Data("coffer-server: \(text)\n".utf8))
      throw ExitCode(code)
    }
  }

  private static func describe(_ error: any Error) -> (code: Int32, text: String) {
    switch error {
    case let error as ServerError: (code(of: error), "\(error)")
    case let error as StoreError: (code(of: error), "\(error)")
    case let error as SystemError: (error.isAbsent ? 66 : error.isFull ? 73 : error.isShortage ? 75 : 74, "\(error)")
    case let error as CryptoError: (error.isShortage ? 75 : 65, "\(error)")
    default: (70, "internal error (\(type(of: error)))")
    }
  }

  private static func code(of error: ServerError) -> Int32 {
    switch error {
    case .invalid, .plainHTTPBeyondLoopback, .policyInvalid: 64
    case .serverKeyDamaged, .invalidTLS, .auditDamaged: 65
    case .noDataDirectory, .serverKeyMissing, .noSuchTenant: 66
    case .cannotListen: 69
    case .dataDirectoryNotEmpty, .tenantExists, .administratorExists, .policyTooLarge, .backupExists: 73
    case .serverKeyExposed: 77
    }
  }

  private static func code(of error: StoreError) -> Int32 {
    switch error {
    case .unavailable: 75
    case .damagedFile, .damaged, .foreignServerKey, .newerFormat: 65
    }
  }
}
