internal import CofferFiles
internal import CofferSystem
internal import CofferVault

/// Why an operation on a view failed. Whoever serves a system's programs gives each its number from the manual pages.
public enum ViewError: Error, Sendable, Hashable {
  /// The view has ended.
  case ended
  /// The view, or the vault, can only be read.
  case readOnly
  /// The file's protection class is locked.
  case locked
  case notFound, exists, notADirectory, isADirectory, directoryNotEmpty
  /// An argument that no file can have.
  case invalid
  case nameTooLong
  /// The file would be larger than a vault can hold.
  case tooLarge
  case tooManyLinks, folderLink, linkLoop
  case noSuchAttribute, invalidAttributeName, attributeTooLarge
  /// Neither the vault's system nor its bounds have room.
  case full
  case badHandle, busy
  /// Behind the offset there is no such place (lseek(2)).
  case noSuchPlace
  /// The vault keeps no such thing.
  case unsupported
  case notPermitted
  /// A system call under the vault failed with this number.
  case system(CInt)
  /// Anything else, damage above all: input or output failed.
  case failed

  /// Whatever a view's body threw.
  init(wrapping error: any Error) {
    switch error {
    case let error as ViewError: self = error
    case let error as VaultError: self.init(error)
    default: self = .failed
    }
  }

  init(_ error: VaultError) {
    self =
      switch error {
      case .notFound: .notFound
      case .exists, .attributeExists: .exists
      case .notADirectory: .notADirectory
      case .isADirectory: .isADirectory
      case .directoryNotEmpty: .directoryNotEmpty
      case .invalidName, .moveIntoItself, .wrongKind, .invalidTime: .invalid
      case .tooLarge: .tooLarge
      case .tooManyLinks: .tooManyLinks
      case .folderLink: .folderLink
      case .invalidLink: .nameTooLong
      case .linkLoop: .linkLoop
      case .noSuchAttribute: .noSuchAttribute
      case .invalidAttributeName: .invalidAttributeName
      case .attributeTooLarge: .attributeTooLarge
      case .tooManyAttributes, .nameCollisions, .full: .full
      case .badHandle: .badHandle
      case .rootFolder, .busy: .busy
      case .locked: .locked
      case .olderThanAnchor: .readOnly
      case .system(let error): .system(error.code)
      default: .failed
      }
  }
}
