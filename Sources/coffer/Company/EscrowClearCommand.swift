internal import ArgumentParser
internal import CofferAPI
internal import CofferContainer
internal import CofferCrypto
internal import CofferKeys
internal import CofferPolicy
internal import CofferSystem
internal import Foundation

struct EscrowClearCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "clear", abstract: "Clears the passcode of one device, with the company's private key.",
    discussion: """
      Example:
        coffer escrow clear device.json --escrow-key-file company.key

      device.json is what the server answers to GET /v1/devices/ID. Needs no network and no vault: it belongs where the
      private key is. Prints a clearing, which the administrator gives to the device with the order clearPasscode, and a
      code, which must reach the person by another way: with it, coffer recover --cleared sets a new passcode within an
      hour. Neither is good for anything without the other and without the device. Make sure of who asks.
      """)

  @Option(help: ArgumentHelp("The company's private key.", valueName: "file"))
  var escrowKeyFile: String

  @Option(help: ArgumentHelp("Write the code to this new file instead of showing it.", valueName: "file"))
  var codeFile: String?

  @Flag(help: "Answer in JSON.")
  var json = false

  @Argument(help: ArgumentHelp("The device's record, in JSON; - is standard input.", valueName: "device"))
  var device: String

  private struct Device: Decodable {
    struct Report: Decodable { let escrow: EscrowReport? }
    let id: String
    let report: Report?
  }

  private struct Answer: Encodable {
    let company: String
    let device: String
    let vault: String
    let clearing: String
    let code: String?
  }

  func run() throws {
    let key = try EscrowKeyFile.read(escrowKeyFile)
    let input = device == "-" ? Session.present.input : try FileSystem().open(device, .readOnly)
    guard let record = try? JSONDecoder().decode(Device.self, from: Data(input.contents(limit: 1 << 20))),
      PolicyText.isIdentifier(record.id)
    else { throw Failure(code: 65, text: "\(device): not a device's record, as GET /v1/devices/ID has it") }
    guard let report = record.report?.escrow else {
      throw Failure.notFound(
        "the device has handed in nothing for an escrow key: it does so at the first unlock after the policy asks for one"
      )
    }
    guard let offer = ClearingOffer(report) else {
      throw Failure(code: 65, text: "what the device handed in for the escrow key is damaged")
    }
    let (clearing, code) = try offer.clearing(with: key, tenant: report.tenant, device: record.id)
    let shown = codeFile == nil ? code.text.withUnsafeBytes { String(decoding: $0, as: UTF8.self) } : nil
    if let codeFile { try write(code, to: codeFile) }
    if json {
      return try Output.json(
        Answer(
          company: report.tenant, device: record.id, vault: offer.vault.description, clearing: clearing, code: shown))
    }
    Output.line("company    \(report.tenant)")
    Output.line("device     \(record.id)")
    Output.line("clearing   \(clearing)")
    if let shown { Output.line("code       \(shown)") }
    Output.note("give the clearing to the server, and tell the code to the person alone, by another way")
  }

  private func write(_ code: RecoveryKey, to path: String) throws {
    let files = FileSystem()
    guard try files.status(of: path) == nil else {
      throw Failure.cannotCreate("\(path): there is something at this place already")
    }
    let file = try files.open(path, [.writeOnly, .createNew], permissions: 0o600)
    try file.writeAll(code.text)
    try file.writeAll([10])
    try file.sync()
  }
}

extension ClearingOffer {
  /// Nil where a part is not what it must be.
  init?(_ report: EscrowReport) {
    guard report.isWellFormed, let vault = Base64URL.decode(report.vault).flatMap({ VaultID(bytes: $0) }),
      let escrowKey = Base64URL.decode(report.escrowKey).flatMap({ try? HybridPublicKey(bytes: $0) }),
      let clearingKey = Base64URL.decode(report.clearingKey).flatMap({ try? HybridPublicKey(bytes: $0) }),
      let encapsulated = Base64URL.decode(report.encapsulatedKey), let sealed = Base64URL.decode(report.sealedKey),
      let signature = Base64URL.decode(report.signature)
    else { return nil }
    self.init(
      vault: vault, escrowKey: escrowKey, slot: HybridBox(encapsulatedKey: encapsulated, ciphertext: sealed),
      clearingKey: clearingKey, signature: signature)
  }
}
