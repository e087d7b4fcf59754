internal import ArgumentParser
internal import CofferContainer

struct EscrowCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "escrow", abstract: "A company's key for the vaults of its people.",
    discussion: "Example:\n  coffer escrow keygen company.key > company.pub",
    subcommands: [EscrowKeygenCommand.self])
}

struct EscrowKeygenCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "keygen", abstract: "Makes a company's key: the private one in a file, the public one printed.",
    discussion: """
      Example:
        coffer escrow keygen company.key > company.pub

      coffer init --escrow-key company.pub then lets the company open that vault with coffer recover
      --escrow-key-file company.key; the person is told so. Keep the private key where nobody works with it.
      """)

  @Flag(help: "Answer in JSON.")
  var json = false

  @Argument(help: ArgumentHelp("A new file for the private key.", valueName: "file"))
  var file: String

  func run() throws {
    let key = try EscrowKeyFile.create(at: file)
    if json { try Output.json(["escrowKey": key]) } else { Output.line(key) }
  }
}
