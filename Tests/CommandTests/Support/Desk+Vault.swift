import CofferContainer
import CofferCrypto
import CofferFiles
import CofferKeys
import CofferSystem
import CofferTestSupport
import CofferVault
import Foundation
import GRDB
import Testing

/// What the commands cannot bring about: what a mount stores, and what an attacker changes.
extension Desk {
  /// Makes the desk's vault as `coffer init` does, but for the cheapest derivation that a vault may have; returns its id.
  ///
  /// Hundreds of tests open a vault by its passcode again and again. At half a second for each, as `coffer init` chooses,
  /// they would do little else.
  @discardableResult
  func makeVault(
    withRecoveryKey: Bool = true, costExponent: Int = PasscodeDerivation.costExponents.lowerBound
  ) throws -> String {
    var keys = KeyOptions()
    if withRecoveryKey { keys.recoveryKey = RecoveryKey() }
    let container = try Container.create(
      at: try #require(environment["COFFER_VAULT"]),
      keyStore: FileKeyStore(path: try #require(environment["COFFER_KEY_STORE"])), passcode: Self.passcodeBytes,
      derivation: PasscodeDerivation(costExponent: costExponent, salt: Randomness.bytes(32)),
      keys: keys, sniffer: ContentTypeHelper())
    defer { try? container.close() }
    return container.id.description
  }

  /// Makes the vault on a disk of its own, which can be filled: the folder `disk`, for as long as what is returned is kept.
  func makeVault(onDiskOf mebibytes: Int) throws -> MountedDisk {
    let disk = try MountedDisk(in: folder, mebibytes: mebibytes)
    environment["COFFER_VAULT"] = path("disk/vault")
    try makeVault()
    return disk
  }

  private static var passcodeBytes: SecretBytes {
    Array(passcode.utf8).withUnsafeBytes { SecretBytes(copying: $0) }
  }

  /// Runs `body` on the open vault.
  func withVault(_ body: (Vault) throws -> Void) throws {
    let vault = try Vault.open(
      at: path("vault"), keyStore: FileKeyStore(path: path("keys")), passcode: { Self.passcodeBytes })
    try body(vault)
    try vault.close()
  }

  /// Changes one byte in the midst of the largest object.
  func damageLargestObject() throws {
    func size(_ line: String) -> Int { line.split(separator: " ").last.flatMap { Int($0) } ?? 0 }
    let line = try #require(objects().max { size($0) < size($1) })
    let object = String(line.prefix { $0 != " " })
    var bytes = try read(object)
    bytes[bytes.count / 2] ^= 1
    try write(object, bytes)
  }

  /// Takes a row of the index away, as someone who has the folder and no key.
  func deleteRow(_ number: Int) throws {
    let queue = try DatabaseQueue(path: path("vault/index.sqlite"))
    try queue.write { db in try db.execute(sql: "DELETE FROM record WHERE rowid = ?", arguments: [number]) }
    try queue.close()
  }

  /// Puts the vault's folder aside, and the copy in its place.
  func restore(_ copy: String, aside: String = "aside") throws {
    try FileManager.default.moveItem(atPath: path("vault"), toPath: path(aside))
    try self.copy(copy, to: "vault")
  }

  /// Runs `coffer` on a terminal of its own, where `typed` is typed.
  func onTerminal(_ arguments: String..., typed: String) throws -> RunningProgram.Outcome {
    let program = RunningProgram.folder.appendingPathComponent("coffer").path
    let command = ([program] + arguments + ["--passcode-file", "passcode"]).joined(separator: " ")
    return try run("/usr/bin/script", ["-qec", command, "/dev/null"], input: Array(typed.utf8))
  }

  /// Starts lines of bash on a terminal of its own.
  func startOnTerminal(_ lines: String) throws -> RunningProgram {
    try write("lines.sh", "PATH='\(RunningProgram.folder.path)':$PATH\n\(lines)\n")
    return try start("/usr/bin/script", ["-qec", "bash lines.sh", "/dev/null"])
  }

  /// Runs `coffer` on a terminal of its own, where each answer is typed once its prompt is there and no echo; returns the
  /// exit code.
  func onTerminal(
    _ arguments: [String], answering answers: [(prompt: String, answer: String)],
    sourceLocation: SourceLocation = #_sourceLocation
  ) throws -> Int32 {
    let coffer = RunningProgram.folder.appendingPathComponent("coffer").path
    let command = ([coffer] + arguments + ["--passcode-file", "passcode"]).joined(separator: " ")
    let program = try start("/usr/bin/script", ["-qec", command, "/dev/null"])
    for (prompt, answer) in answers {
      var shown: [UInt8] = []
      while !shown.suffix(prompt.utf8.count).elementsEqual(prompt.utf8), let byte = program.byte() {
        shown.append(byte)
      }
      let text = String(decoding: shown, as: UTF8.self)
      #expect(text.hasSuffix(prompt) && !answers.contains { text.contains($0.answer) }, sourceLocation: sourceLocation)
      program.send(Array((answer + "\n").utf8))
    }
    return program.wait().code
  }
}
