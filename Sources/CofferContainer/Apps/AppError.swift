public import CofferSystem

/// What goes wrong with an app on this device: its manifest, its installation, or a delivery to it.
public enum AppError: Error, Equatable, Sendable, CustomStringConvertible {
  /// The manifest is not one: `what` names the member, never its value.
  case malformedManifest(String)
  /// The manifest has no signature.
  case unsigned
  /// The signature is not that of the manifest's team key over what the manifest says.
  case notAuthentic
  /// The executable is not beside the manifest, or not a file that may be one.
  case noExecutable
  /// The executable is not the one that the manifest was signed for.
  case executableChanged
  /// An app with this bundle id is installed, of another team.
  case installedFromOtherTeam
  /// The policy approves this bundle id for another team only. `rules` are the approvals that say so.
  case approvedForOtherTeam(rules: [String])
  /// No app with this bundle id is installed.
  case notInstalled
  /// The record of an installed app cannot be read.
  case damagedRecord
  /// The file does not hold a team's private key as `coffer app keygen` writes it.
  case malformedKey
  /// A key is in a file that others may read.
  case exposedKey
  /// A file with this name is there, and it is not replaced.
  case alreadyExists
  /// A name that no file in a folder can have.
  case invalidFileName
  /// The app's container is not as it was made.
  case damagedContainer
  /// What was decided on has changed before the delivery was complete; nothing was delivered.
  case outdatedDecision
  /// The content ended before its stated size.
  case incompleteContent
  /// A system call failed.
  case system(SystemError)

  public var description: String {
    switch self {
    case .malformedManifest(let what): "not an app's manifest: \(what)"
    case .unsigned: "the manifest is not signed; its team signs it with `coffer app sign`"
    case .notAuthentic: "the manifest was altered after its team signed it, or another key signed it"
    case .noExecutable: "the manifest's executable is not a file beside it"
    case .executableChanged: "the executable is not the one that the manifest was signed for"
    case .installedFromOtherTeam:
      "an app with this bundle id is installed from another team; remove that one first if this one is meant"
    case .approvedForOtherTeam(let rules):
      "the policy approves this bundle id for another team only (\(rules.joined(separator: ", ")))"
    case .notInstalled: "no app with this bundle id is installed"
    case .damagedRecord: "the record of an installed app is damaged; remove the app and install it again"
    case .malformedKey: "not a team's private key; `coffer app keygen` makes one"
    case .exposedKey: "the key can be read by others; make it private with `chmod 600`"
    case .alreadyExists: "a file with this name is there already; it is not replaced"
    case .invalidFileName: "not a name that a file can have in a folder"
    case .damagedContainer: "the app's container is not as it was made; remove the app and install it again"
    case .outdatedDecision: "the policy changed before the delivery was complete; nothing was delivered, try again"
    case .incompleteContent: "the file ended before its stated size"
    case .system(let error): "\(error)"
    }
  }

  /// Runs `body`; what the system refuses becomes ``system(_:)``.
  static func catching<Result>(_ body: () throws(SystemError) -> Result) throws(AppError) -> Result {
    do { return try body() } catch { throw .system(error) }
  }

  /// A system's error as one of this module; any other as it is.
  static func wrapping(_ error: any Error) -> any Error {
    (error as? SystemError).map { AppError.system($0) } ?? error
  }
}
