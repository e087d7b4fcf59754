internal import ArgumentParser
internal import CofferContainer
internal import CofferCrypto
internal import CofferKeys
internal import CofferSystem
internal import Foundation

struct InitCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "init", abstract: "Makes a vault in an empty or new folder.",
    discussion: """
      Example:
        coffer init --vault ~/Documents.coffer

      The passcode cannot be recovered: whoever forgets it loses the files. The folder alone opens nothing either, the
      device's secret is in the key store.
      """)

  @OptionGroup var options: GlobalOptions

  @Flag(name: .customLong("no-recovery-key"), help: "Make no recovery key (none is made yet).")
  var noRecoveryKey = false

  func run() throws {
    let path = try options.vaultPath
    let folder = URL(fileURLWithPath: path).resolvingSymlinksInPath().path
    guard !(URL(fileURLWithPath: options.keyStorePath).resolvingSymlinksInPath().path + "/").hasPrefix(folder + "/")
    else {
      throw Failure.usage("the key store must not be inside the vault: a copy of the vault would then open by itself")
    }
    if let status = try FileSystem().status(of: path), status.kind == .file {
      throw Failure.cannotCreate("\(path): not a folder")
    }
    let passcode = try Passcode.new(options.passcodeFile)
    let container = try Container.create(
      at: path, keyStore: options.keys, passcode: passcode, derivation: PasscodeCost.chosen(),
      sniffer: ContentTypeHelper())
    let id = container.id.description
    try container.close()
    if options.json { try Output.json(["vaultID": id]) } else { Output.line(id) }
  }
}

/// How much work a passcode costs on this machine.
enum PasscodeCost {
  /// Doubles the cost until one derivation takes about a quarter of a second or 128 MiB, whichever comes first. The
  /// memory is bounded because a phone's extension must open the same vault.
  static func chosen() throws -> PasscodeDerivation {
    let salt = Randomness.bytes(32)
    var exponent = 15
    while exponent < 17 {
      let trial = try PasscodeDerivation(costExponent: exponent, salt: salt)
      let start = ContinuousClock.now
      _ = try trial.key(for: SecretBytes(count: 8) { _ in })
      if ContinuousClock.now - start > .milliseconds(150) { break }
      exponent += 1
    }
    return try PasscodeDerivation(costExponent: exponent, salt: salt)
  }
}
