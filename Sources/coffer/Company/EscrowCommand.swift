internal import ArgumentParser
internal import CofferContainer
internal import CofferCrypto
internal import CofferPolicy

struct EscrowCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "escrow", abstract: "A company's key for the vaults of its people.",
    discussion:
      "Examples:\n  coffer escrow keygen company.key > company.pub\n"
      + "  coffer escrow clear device.json --escrow-key-file company.key",
    subcommands: [EscrowKeygenCommand.self, EscrowClearCommand.self])
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
    guard json else { return Output.line(key) }
    // As a server takes it for a delegation.
    let bytes = try EscrowKeyFile.read(file).publicKey.bytes
    try Output.json(["escrowKey": key, "publicKey": Base64URL.encode(bytes)])
  }
}
