internal import ArgumentParser
internal import CofferContainer
internal import CofferFiles

struct ProtectCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "protect", abstract: "Says when a file can be read, or the files that a folder gets from now on.",
    discussion: """
      Examples:
        coffer protect /inbox complete-unless-open
        coffer protect /report.pdf complete

      The classes, from the strictest:
        complete               while the vault is unlocked; every vault's default
        complete-unless-open   likewise; new files can be stored while it is locked
        until-first-unlock     as long as the agent holds the vault, locked or not
        none                   whenever the device's key store can be read

      A folder's class is that of files that are made in it later. A file that gets a stricter class is sealed anew under
      a new key; where that is interrupted, the same command goes on with it.
      """)

  @OptionGroup var options: GlobalOptions

  @Argument(help: ArgumentHelp("A file or folder in the vault.", valueName: "path"))
  var path: String

  @Argument(
    help: ArgumentHelp(
      "complete, complete-unless-open, until-first-unlock or none.", valueName: "class"),
    completion: .list(ProtectionClass.allCases.map(\.name)))
  var protection: String

  func validate() throws { _ = try chosen() }

  private func chosen() throws -> ProtectionClass {
    guard let chosen = ProtectionClass(name: protection) else {
      let names = ProtectionClass.allCases.map(\.name).joined(separator: ", ")
      throw ValidationError("There is no protection class of this name; the classes are \(names).")
    }
    return chosen
  }

  private struct Answer: Encodable {
    let path: String
    let protection: String
  }

  func run() throws {
    let protection = try chosen()
    let path = try VaultPath(argument: self.path)
    try options.withContainer(.refused) { container in
      Interrupts.catchFromHere()
      try PathText.naming(path) {
        let transfer = Transfer(total: try container.attributes(at: path).byteCount)
        defer { transfer.end() }
        try container.protect(path, as: protection, control: transfer.control)
      }
    }
    if options.json { try Output.json(Answer(path: path.text, protection: protection.name)) }
  }
}
