internal import ArgumentParser
internal import CofferContainer
internal import CofferFiles
internal import CofferSystem

struct ShareCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "share", abstract: "Gives an app a copy of a file in its Inbox, if policy permits it.",
    discussion: """
      Example:
        coffer share /report.pdf --with com.example.editor

      Prints the path of the copy. A refusal says the reason, the rule and the policy's revision, ends with code 77, and
      leaves nothing.
      """)

  @OptionGroup var options: GlobalOptions
  @OptionGroup var containers: ContainersOption

  @Option(help: ArgumentHelp("The receiving app.", valueName: "bundle-id"))
  var with: String

  @Argument(help: ArgumentHelp("A file in the vault.", valueName: "path"))
  var path: String

  func run() throws {
    try options.withContainer { container in
      let delivered = try container.share(VaultPath(argument: path), with: with, in: containers.registry(of: container))
      if options.json {
        try Output.json(["path": String(decoding: delivered, as: UTF8.self)])
      } else {
        Output.name("", delivered)
      }
    }
  }
}

struct AppsCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "apps", abstract: "Shows which installed apps may receive a copy of what.",
    discussion: "Example:\n  coffer apps")

  @OptionGroup var options: GlobalOptions
  @OptionGroup var containers: ContainersOption

  private struct Approved: Encodable {
    let bundleId: String
    let name: String
    /// Absent where no policy decides and everything is allowed.
    let extensions: [String]?
  }

  func run() throws {
    try options.withContainer { container in
      let apps = try containers.registry(of: container).apps().map { app in
        Approved(
          bundleId: app.bundleId, name: app.manifest.name, extensions: container.approvedExtensions(of: app))
      }
      if options.json { return try Output.json(apps) }
      for app in apps {
        let what =
          app.extensions.map { $0.isEmpty ? "nothing" : $0.map { ".\($0)" }.joined(separator: " ") }
          ?? "everything (no company)"
        Output.line("\(app.bundleId)  \(app.name)  receives \(what)")
      }
    }
  }
}
