internal import ArgumentParser
internal import CofferClient
internal import CofferContainer
internal import CofferCrypto
internal import CofferFiles
internal import CofferKeys
internal import CofferSystem

/// A failure of a command, with its exit code from the contract in Documentation/CommandLine.md.
struct Failure: Error {
  let code: Int32
  let text: String
  /// The text begins with the path that it is about.
  let isNamed: Bool

  /// Somebody interrupted a question. Questions come before anything is done.
  static let interruptedQuestion = Failure(code: 130, text: "interrupted; nothing was changed")

  static func usage(_ text: String) -> Failure { Failure(code: 64, text: text) }
  static func notFound(_ text: String) -> Failure { Failure(code: 66, text: text) }
  static func cannotCreate(_ text: String) -> Failure { Failure(code: 73, text: text) }

  /// Writes one line for a failure to standard error; what is returned carries only its code. The argument parser's own
  /// errors (a wrong option, --help) pass through: they have a text and a code.
  static func reported(_ error: any Error) -> any Error {
    guard let failure = Failure(error) else { return error }
    Output.note(failure.text)
    return ExitCode(failure.code)
  }

  init?(_ error: any Error) {
    switch error {
    case let error as Failure: self = error
    case let error as ContainerError: self.init(code: Self.code(error.category), text: error.description)
    case let error as RNCryptorError: self.init(ContainerError(error))
    case let error as AppError: self.init(code: Self.code(error), text: error.description)
    case let error as ClientError:
      let code: Int32 =
        switch error.kind {
        case .usage: 64
        case .unavailable: 69
        case .refused: 77
        }
      self.init(code: code, text: error.description)
    case let error as RecoveryKey.Mistake: self.init(code: 64, text: error.description)
    case let error as InvalidName: self.init(code: 64, text: error.description)
    case let error as SystemError:
      self.init(code: Self.code(error), text: error.isInterrupt ? "interrupted" : error.description)
    case let error as KeyStoreError: self.init(code: error.isShortage ? 75 : 74, text: error.description)
    case let error as CryptoError where error.isShortage: self.init(code: 75, text: error.description)
    case is ValidationError, is ExitCode, is CleanExit: return nil
    default:
      // What is left are the parser's own errors, which are not public types, and failures nobody foresaw.
      if String(reflecting: type(of: error)).hasPrefix("ArgumentParser.") { return nil }
      self.init(code: 70, text: "internal error (\(type(of: error)))")
    }
  }

  init(code: Int32, text: String, isNamed: Bool = false) {
    self.code = code
    self.text = text
    self.isNamed = isNamed
  }

  static func code(_ error: SystemError) -> Int32 {
    if error.isInterrupt { return 130 }
    return error.isAbsent ? 66 : error.isFull ? 73 : error.isShortage ? 75 : 74
  }

  static func code(_ category: ContainerError.Category) -> Int32 {
    switch category {
    case .usage: 64
    case .damaged: 65
    case .notFound: 66
    case .cannotCreate: 73
    case .inputOutput, .closedToChanges: 74
    case .tryAgain, .inUse: 75
    case .refused: 77
    case .cancelled: 130
    }
  }

  private static func code(_ error: AppError) -> Int32 {
    switch error {
    case .malformedManifest, .malformedKey, .damagedRecord, .damagedContainer: 65
    case .notInstalled, .noExecutable: 66
    case .alreadyExists: 73
    case .invalidFileName: 64
    case .unsigned, .notAuthentic, .executableChanged, .installedFromOtherTeam, .approvedForOtherTeam, .exposedKey: 77
    case .outdatedDecision: 75
    case .incompleteContent: 74
    case .system(let error): code(error)
    }
  }
}
