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
    let secret = try rncryptor.secret(isNew: true, beside: options)
    let (path, size, isStream) = try options.withContainer { container in
      Interrupts.catchFromHere()
      let path = try VaultPath(argument: self.path)
      let attributes = try container.attributes(at: path)
      guard attributes.kind == .file else { throw Failure.usage("only a file can be exported") }
      let files = FileSystem()
      let export = Export(container: container, files: files, form: .rncryptor(secret))
      let place = try Destination(destination, files)
      try export.write(path, to: place)
      if case .stream = place { return (path, attributes.byteCount, true) }
      return (path, attributes.byteCount, false)
    }
    if options.json, !isStream {
      try Output.json(Result(path: String(decoding: path.bytes, as: UTF8.self), size: size))
    }
  }

  private struct Result: Encodable {
    let path: String
    let size: UInt64
  }
}
