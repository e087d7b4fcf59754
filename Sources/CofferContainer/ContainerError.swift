public import CofferCrypto
internal import CofferKeys
public import CofferPolicy
internal import CofferSystem
internal import CofferVault

/// What the container refuses or fails. Its description says what happened and what to do next, and holds no file name.
public struct ContainerError: Error, Sendable, CustomStringConvertible {
  /// What kind of failure it is, for programs that act on it.
  public enum Category: Sendable, Hashable {
    case usage, damaged, notFound, cannotCreate, inputOutput, tryAgain, refused, cancelled
    /// Another process has the vault open.
    case inUse
    /// An earlier failure lets nothing be stored until the vault is opened again.
    case closedToChanges
  }

  public let category: Category
  public let description: String
  /// The decision, where policy refused.
  public let decision: Decision?

  public init(_ category: Category, _ description: String) {
    self.category = category
    self.description = description
    decision = nil
  }

  /// A refusal by policy.
  init(refusal decision: Decision) {
    category = .refused
    self.decision = decision
    description =
      "\(decision.sentence) (rule \(decision.rules.joined(separator: ", ")), policy revision \(decision.revision))"
  }

  /// What lets content out could not be recorded.
  init(unrecorded cause: any Error) {
    let cause = (cause as? VaultError).map { Self($0) } ?? (cause as? Self) ?? Self(.inputOutput, "it failed")
    category = cause.category
    description =
      "your company has what leaves the vault recorded first, and that could not be stored (\(cause.description))"
    decision = nil
  }

  init(_ error: VaultError) {
    var error = error
    // What waited for the other end of a stream was interrupted.
    if case .system(let cause) = error, cause.isInterrupt { error = .cancelled }
    self.init(Self.category(of: error), error.description)
  }

  /// What is wrong with data in RNCryptor's format, or with what it should be opened with.
  public init(_ error: RNCryptorError) {
    self.init(Self.category(of: error), error.description)
  }

  /// Runs `body` and gives the vault's failures this module's type; others pass.
  static func catching<Result>(_ body: () throws -> Result) throws -> Result {
    do {
      return try body()
    } catch let error as VaultError {
      throw ContainerError(error)
    } catch let error as RNCryptorError {
      throw ContainerError(error)
    }
  }

  private static func category(of error: VaultError) -> Category {
    switch error {
    case .clearing(.nothingPending), .noVault, .notAVault, .notFound, .noRecoverySlot, .noEscrowSlot, .notADirectory,
      .noSuchAttribute, .linkLoop:
      .notFound
    case .folderNotEmpty, .exists, .directoryNotEmpty, .full, .unstored, .attributeExists, .tooLarge, .tooManyLinks,
      .tooManyAttributes, .nameCollisions:
      .cannotCreate
    case .newerFormat, .damaged, .olderThanAnchor, .outdatedKeybag: .damaged
    case .wrongPasscode, .tooManyAttempts, .wiped, .maybeCopy, .copyOfPresentVault, .foreignKeybag, .nothingToWipe,
      .wrongRecoveryKey,
      .wrongEscrowKey, .clearing, .deviceSecretMissing, .locked:
      .refused
    case .inUse: .inUse
    case .busy, .noMemory: .tryAgain
    case .system(let error) where error.isShortage: .tryAgain
    case .keyStore(let error) where error.isShortage: .tryAgain
    case .emptyPasscode, .settingTooLarge, .isADirectory, .invalidName, .moveIntoItself, .rootFolder, .invalidLink,
      .wrongKind, .folderLink, .invalidTime, .invalidAttributeName, .attributeTooLarge, .badHandle:
      .usage
    case .sourceChanged, .system, .keyStore, .database, .readOnlyDisk: .inputOutput
    case .needsReopening: .closedToChanges
    case .rncryptor(let error): category(of: error)
    case .cancelled: .cancelled
    }
  }

  private static func category(of error: RNCryptorError) -> Category {
    switch error {
    case .notRNCryptor, .unsupportedVersion, .truncated, .notAuthentic, .malformedPadding, .malformedKeys: .damaged
    case .needsPassword, .needsKeys, .emptyPassword: .usage
    }
  }
}
