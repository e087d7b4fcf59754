internal import ArgumentParser
internal import CofferContainer
internal import CofferCrypto
internal import CofferPolicy
internal import CofferSystem

struct AppCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "app", abstract: "Signs apps, and installs them on this device.",
    discussion: "Example:\n  coffer app install Editor/manifest.json",
    subcommands: [
      AppKeygenCommand.self, AppSignCommand.self, AppInstallCommand.self, AppListCommand.self, AppRemoveCommand.self,
    ])
}

struct AppKeygenCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "keygen", abstract: "Makes a team's key: the private one in a file, the public one printed.",
    discussion: "Example:\n  coffer app keygen team.key")

  @Flag(help: "Answer in JSON.")
  var json = false

  @Argument(help: ArgumentHelp("A new file for the private key.", valueName: "file"))
  var file: String

  func run() throws {
    let key = try TeamKeyFile.create(at: file).text
    if json { try Output.json(["teamKey": key]) } else { Output.line(key) }
  }
}

struct AppSignCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "sign", abstract: "Signs an app's manifest in place, for the executable as it is now.",
    discussion: "Example:\n  coffer app sign Editor/manifest.json --key team.key")

  @Option(help: ArgumentHelp("The team's private key.", valueName: "file"))
  var key: String

  @Flag(help: "Answer in JSON.")
  var json = false

  @Argument(help: ArgumentHelp("The manifest.", valueName: "manifest"))
  var manifest: String

  private struct Answer: Encodable {
    let manifest: String
    let bundleId: String
    let teamKey: String
  }

  func run() throws {
    let key = try TeamKeyFile.read(key)
    let signed = try AppPackage(manifestAt: manifest).sign(with: key)
    if json {
      try Output.json(Answer(manifest: manifest, bundleId: signed.identity.bundleId, teamKey: key.verifyingKey.text))
    }
  }
}

struct AppInstallCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "install", abstract: "Makes a signed app known on this device, with a container of its own.",
    discussion: """
      Example:
        coffer app install Editor/manifest.json

      Refused: an unsigned or altered manifest, an executable that is not the signed one, and an app whose bundle id
      belongs to another team.
      """)

  @OptionGroup var options: GlobalOptions
  @OptionGroup var containers: ContainersOption

  @Argument(help: ArgumentHelp("The manifest.", valueName: "manifest"))
  var manifest: String

  func run() throws {
    try options.withContainer(.refused) { container in
      var approvals: [AppApproval] = []
      if case .enrolled(let enrolment) = container.enrolment { approvals = enrolment.policy.apps }
      let registry = try containers.registry(of: container)
      let app = try registry.install(manifestAt: FileSystem().pathNamed(manifest), approvals: approvals)
      let description = AppDescription(app, registry)
      if options.json { return try Output.json(description) }
      Output.line(description.container)
    }
  }
}

struct AppListCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "list", abstract: "Lists the apps that are known on this device.",
    discussion: "Example:\n  coffer app list")

  @OptionGroup var options: GlobalOptions
  @OptionGroup var containers: ContainersOption

  func run() throws {
    try options.withContainer { container in
      let registry = try containers.registry(of: container)
      let apps = try registry.apps().map { AppDescription($0, registry) }
      if options.json { return try Output.json(apps) }
      for app in apps { Output.line("\(app.bundleId)  \(app.version)  team \(app.teamId)  \(app.container)") }
    }
  }
}

struct AppRemoveCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "remove", abstract: "Forgets an app, and removes its container with everything in it.",
    discussion: "Example:\n  coffer app remove com.example.editor")

  @OptionGroup var options: GlobalOptions
  @OptionGroup var containers: ContainersOption

  @Argument(help: ArgumentHelp("The app.", valueName: "bundle-id"))
  var bundleId: String

  func run() throws {
    try options.withContainer(.refused) { try containers.registry(of: $0).remove(bundleId) }
    if options.json { try Output.json(["removed": bundleId]) }
  }
}

/// An installed app in text.
struct AppDescription: Encodable {
  let bundleId: String
  let teamId: String
  let teamKey: String
  let name: String
  let version: String
  let container: String

  init(_ app: InstalledApp, _ registry: AppRegistry) {
    bundleId = app.bundleId
    teamId = app.verified.identity.teamId
    teamKey = app.verified.teamKey.text
    name = app.manifest.name
    version = app.manifest.version
    container = registry.container(of: app).path
  }
}
