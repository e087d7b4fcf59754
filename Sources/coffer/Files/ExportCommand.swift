internal import ArgumentParser
internal import CofferContainer
internal import CofferFiles
internal import CofferSystem

struct ExportCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "export", abstract: "Copies a file out of the vault, encrypted for another program.",
    discussion: """
      Examples:
        coffer export --rncryptor /letters/letter.pdf letter.rncryptor
        coffer export --rncryptor --rncryptor-key-file keys /scan.pdf - | send-scan

      Writes RNCryptor's version 3. A password is asked for twice. On a device that belongs to a company this asks for
      the action saveCopy. The copy appears under its name when it is complete, and can be read by its owner only.
      """)

  @OptionGroup var options: GlobalOptions
  @OptionGroup var rncryptor: RNCryptorOptions

  @Argument(help: ArgumentHelp("A file in the vault.", valueName: "path"))
  var path: String

  @Argument(help: ArgumentHelp("A folder, a name, or - for standard output.", valueName: "dest"))
  var destination: String

  func run() throws {
    // What cannot be written to or read is said before anyone is asked for anything.
    let path = try VaultPath(argument: self.path)
    let files = FileSystem()
    let place = try Destination(destination, files)
    try place.requireReplaceable(path.lastName, files)
    let given = try rncryptor.fromFile(beside: options)
    let size = try options.withContainer { container in
      Interrupts.catchFromHere()
      let attributes = try PathText.naming(path) {
        let attributes = try container.attributes(at: path)
        guard attributes.kind == .file else { throw Failure.usage("only a file can be exported") }
        // Whoever may not take it out is not asked for a password first.
        if given == nil { _ = try container.openForSaving(path) }
        return attributes
      }
      let secret = try given ?? RNCryptorOptions.asked(isNew: true)
      try Export(container: container, files: files, form: .rncryptor(secret)).write(path, to: place)
      return attributes.byteCount
    }
    if options.json, !place.isStream { try Output.json(Result(path: path.text, size: size)) }
  }

  private struct Result: Encodable {
    let path: String
    let size: UInt64
  }
}
