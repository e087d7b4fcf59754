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

  var keys: FileKeyStore { FileKeyStore(path: keyStorePath) }

  var keyStorePath: String {
    keyStore ?? Environment["COFFER_KEY_STORE"]
      ?? Environment.folder("XDG_STATE_HOME", default: ".local/state") + "/coffer/keys"
  }

  /// Opens the vault, asking for the passcode.
  func open() throws -> Container {
    let container = try Container.open(
      at: vaultPath, keyStore: keys, passcode: { try Passcode.existing(passcodeFile) }, sniffer: ContentTypeHelper())
    if container.isReadOnly {
      Output.note(
        "the vault is older than the newest state this device has seen, or a copy that went another way. A restored "
          + "backup is the usual cause. It can be read, but not changed.")
    }
    return container
  }

  /// Opens the vault, runs `body`, and makes what it did durable.
  func withContainer<Result>(_ body: (Container) throws -> Result) throws -> Result {
    let container = try open()
    do {
      let result = try body(container)
      try container.close()
      return result
    } catch {
      // What was done before the failure stays done; the failure is what the person must hear of.
      try? container.close()
      throw error
    }
  }
}

/// Environment variables.
enum Environment {
  /// The value, or nil where it is not set or empty.
  static subscript(_ name: String) -> String? {
    ProcessInfo.processInfo.environment[name].flatMap { $0.isEmpty ? nil : $0 }
  }

  /// A folder of the XDG base directories.
  static func folder(_ name: String, default relative: String) -> String {
    self[name] ?? (self["HOME"] ?? NSHomeDirectory()) + "/" + relative
  }
}
