internal import ArgumentParser
internal import CofferContainer
internal import CofferKeys
internal import CofferSystem
internal import Foundation

/// Options that every command which needs the vault takes.
struct GlobalOptions: ParsableArguments {
  @Option(help: ArgumentHelp("The vault's folder (else COFFER_VAULT).", valueName: "dir"))
  var vault: String?

  @Option(
    help: ArgumentHelp("A file with the passcode; - is standard input. Else it is asked for.", valueName: "file"))
  var passcodeFile: String?

  @Option(help: ArgumentHelp("The key store's folder (else COFFER_KEY_STORE).", valueName: "dir"))
  var keyStore: String?

  @Flag(help: "Answer in JSON.")
  var json = false

  var vaultPath: String {
    get throws {
      guard let path = vault ?? Environment["COFFER_VAULT"] else {
        throw Failure.usage("which vault? Give --vault DIR, or set COFFER_VAULT")
      }
      return path
    }
  }

  var keyStorePath: String {
    get throws {
      try keyStore ?? Environment["COFFER_KEY_STORE"]
        ?? Environment.folder("XDG_STATE_HOME", default: ".local/state") + "/coffer/keys"
    }
  }

  /// The same, wherever the process goes.
  var absolute: GlobalOptions {
    get throws {
      func absolute(_ path: String) -> String {
        path.hasPrefix("/") ? path : FileManager.default.currentDirectoryPath + "/" + path
      }
      var options = self
      options.vault = absolute(try vaultPath)
      options.keyStore = absolute(try keyStorePath)
      return options
    }
  }

  var keys: FileKeyStore { get throws { FileKeyStore(path: try keyStorePath) } }

  /// A copy of the vault's folder must not carry the device's secret with it.
  func requireKeyStoreOutsideVault() throws {
    guard try !isInVault(keyStorePath) else {
      throw Failure.usage("the key store must be outside the vault's folder; choose another --key-store")
    }
  }

  /// Throws where this user may not look whether there is a vault.
  func requireReadable() throws {
    let path = try vaultPath
    do { _ = try FileSystem().open(path, .directory) } catch {
      guard error.isDenied else { return }
      let name = PathText.shown(Array(path.utf8))
      throw Failure(code: 77, text: "\(name) is not yours to read, or a folder above it is not yours to pass")
    }
  }

  /// Whether a path that need not exist leads to the vault's folder or below it.
  func isInVault(_ path: String) throws -> Bool {
    func components(_ path: String) -> [String] {
      URL(filePath: path).standardizedFileURL.resolvingSymlinksInPath().pathComponents
    }
    let path = try FileSystem().pathNamed(path)
    let vault = try FileSystem().pathNamed(vaultPath)
    // By name, for a vault that is still to be made, and by what is there, whatever links lead to it.
    if components(path).starts(with: components(vault)) { return true }
    return try FileSystem().status(of: vault + "/.").map { try FolderIdentity($0).holds(path) } ?? false
  }

  /// What becomes of a vault that is older than what this device has seen, and can only be read.
  enum OlderState {
    /// The command goes on, and the person is told.
    case noted
    /// The command's own result or refusal says so.
    case toldByCommand
    /// The command would change it, and ends.
    case refused
  }

  /// Opens the vault, asking for the passcode; or takes the one that the agent holds. End with `giveBack`.
  func open(_ olderState: OlderState = .noted) throws -> Container {
    let container: Container
    if let opened = Session.present.container {
      // Nobody asks for it, but it is not the beginning of what is to be stored either.
      try TypedSecret.passcode.passOver(passcodeFile)
      container = opened
    } else {
      container = try open(passcode: { try TypedSecret.passcode.existing(passcodeFile) })
    }
    if let change = container.takeEscrowChange() { EscrowNotice.show(change) }
    guard container.isReadOnly else { return container }
    switch olderState {
    case .noted: Output.note(Self.olderStateText)
    case .toldByCommand: break
    case .refused:
      try? giveBack(container)
      try Self.requireChangeable(container)
    }
    return container
  }

  private static let olderStateText =
    "the vault is older than the newest state this device has seen, or a copy that went another way (a restored backup "
    + "is the usual cause); it can be read, but not changed, unless coffer accept-restored makes it the vault again"

  /// Throws for a vault that can only be read.
  static func requireChangeable(_ container: Container) throws {
    if container.isReadOnly { throw Failure(code: 65, text: olderStateText) }
  }

  func open(passcode: () throws -> SecretBytes, acceptingOlderState: Bool = false) throws -> Container {
    KeptReceipt.finishWipe(at: try vaultPath)
    do {
      return try Container.open(
        at: vaultPath, keyStore: try keys, passcode: passcode, sniffer: ContentTypeHelper(),
        acceptingOlderState: acceptingOlderState)
    } catch let error as ContainerError where error.category == .inUse {
      guard try AgentClient.connect(self)?.status() != nil else { throw error }
      throw Failure(code: 75, text: "the vault's agent has it open; end that first: coffer agent stop")
    }
  }

  /// Opens the vault, runs `body`, and makes what it did durable.
  func withContainer<Result>(
    _ olderState: OlderState = .noted, _ body: (Container) throws -> Result
  ) throws -> Result {
    let container = try open(olderState)
    do {
      let result = try body(container)
      try giveBack(container)
      if let warning = container.warning { Output.note(warning) }
      return result
    } catch {
      // What was done before the failure stays done; the failure is what the person must hear of.
      try? giveBack(container)
      throw error
    }
  }

  /// Makes what was done durable, and ends the use of the vault, which the agent keeps open.
  func giveBack(_ container: Container) throws {
    guard Session.present.container != nil else { return try container.close() }
    if !container.isReadOnly { try container.commitChanges() }
  }
}

/// Environment variables.
enum Environment {
  /// The value, or nil where it is not set or empty.
  static subscript(_ name: String) -> String? {
    Session.present.variable(name).flatMap { $0.isEmpty ? nil : $0 }
  }

  /// Those that a command or the agent takes something from, with what the system's linker needs to start a program.
  static var relevant: [String: String] {
    ProcessInfo.processInfo.environment.filter { name, _ in
      name.hasPrefix("COFFER_") || name.hasPrefix("XDG_")
        || ["HOME", "TMPDIR", "TZ", "LANG", "LD_LIBRARY_PATH"].contains(name)
    }
  }

  /// A folder of the XDG base directories. Throws where nothing says whose it is: Foundation would name one that is nobody's.
  static func folder(_ name: String, default relative: String) throws -> String {
    guard let found = try folderIfKnown(name, default: relative) else { throw noHome(orSet: name) }
    return found
  }

  /// The same; nil where no home is known.
  static func folderIfKnown(_ name: String, default relative: String) throws -> String? {
    guard let found = self[name] ?? (self["HOME"] ?? UserHome.path).map({ $0 + "/" + relative }) else { return nil }
    guard found.hasPrefix("/") else { throw Failure.usage("HOME and \(name) must be absolute paths") }
    return found
  }

  static func noHome(orSet name: String) -> Failure {
    .usage(
      "no home folder is known, for the system's list of users has none for this user: set HOME to a folder of yours, or \(name)"
    )
  }
}
