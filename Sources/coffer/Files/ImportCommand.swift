internal import ArgumentParser
internal import CofferContainer
internal import CofferFiles
internal import CofferSystem

struct ImportCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "import", abstract: "Stores what another program encrypted.",
    discussion: """
      Examples:
        coffer import --rncryptor letter.rncryptor /letters/letter.pdf
        coffer import --rncryptor --rncryptor-password-file password scan.rncryptor /scan.pdf
        fetch-scan | coffer import --rncryptor --rncryptor-key-file keys - /scan.pdf

      The source is opened, and its content sealed in the vault. RNCryptor's versions 3 and 2 are read. The file appears
      in the vault when the whole source was found genuine; otherwise nothing of it stays, and the exit code is 65. A
      file that has the name already is replaced then.
      """)

  @OptionGroup var options: GlobalOptions
  @OptionGroup var rncryptor: RNCryptorOptions

  @Argument(help: ArgumentHelp("The encrypted file; - is standard input.", valueName: "src"))
  var source: String

  @Argument(help: ArgumentHelp("A folder in the vault, or the new name.", valueName: "dest"))
  var destination: String

  func run() throws {
    // What cannot be read is said before anyone is asked for a passcode.
    let stream = try source == "-" ? Session.present.input : open()
    let status = source == "-" ? nil : try stream.status()
    let given = try rncryptor.fromFile(beside: options)
    let (path, attributes) = try options.withContainer(.toldByCommand) { container in
      Interrupts.catchFromHere()
      // What policy says of it comes first.
      try container.checkImport()
      try GlobalOptions.requireChangeable(container)
      let path = try VaultDestination(destination, in: container).target(for: source)
      let secret = try given ?? RNCryptorOptions.asked(isNew: false)
      let isFile = status?.kind == .file
      let transfer = Transfer(total: isFile ? status?.byteCount : nil)
      defer { transfer.end() }
      let attributes = try container.importRNCryptor(
        stream, secret: secret, permissions: status?.permissions ?? 0o600, modified: isFile ? status?.modified : nil,
        to: path, replacing: true, control: transfer.control)
      try container.commitChanges()
      return (path, attributes)
    }
    if options.json { try Output.json(Result(path: path.text, size: attributes.byteCount)) }
  }

  private struct Result: Encodable {
    let path: String
    let size: UInt64
  }

  /// Not waiting for a fifo's writer here: the import does, and hears an interrupt.
  private func open() throws -> OwnedDescriptor {
    let file = try FileSystem().openNamed(source, [.readOnly, .nonBlocking])
    guard try file.status().kind != .directory else { throw Failure.usage("\(source): it is a folder") }
    return file
  }
}
