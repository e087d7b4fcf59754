import Foundation
import Testing

/// Passcodes, recovery keys, a company's key and the end of a vault, as a person and a script meet them.
@Suite struct KeyTests {
  let desk: Desk
  static let new = "staple battery horse"

  init() throws {
    desk = try Desk()
    try desk.write("new", Self.new + "\n")
    try desk.write("wrong", "wrong\n")
  }

  private func run(_ arguments: String..., passcode: String = "passcode") throws -> RunningProgram.Outcome {
    try desk.run("coffer", arguments + ["--passcode-file", passcode])
  }

  private func done(_ arguments: String..., sourceLocation: SourceLocation = #_sourceLocation) throws
    -> RunningProgram.Outcome
  {
    let outcome = try desk.run("coffer", arguments)
    #expect(outcome.code == 0, "\(arguments): \(outcome.errors)", sourceLocation: sourceLocation)
    return outcome
  }

  private func fill() throws { try desk.done("put", "-", "/file", input: noise(10_000)) }

  private func expectFile(_ passcode: String, sourceLocation: SourceLocation = #_sourceLocation) throws {
    let outcome = try run("cat", "/file", passcode: passcode)
    #expect(outcome.bytes == noise(10_000), "\(outcome.errors)", sourceLocation: sourceLocation)
    let put = try desk.run("coffer", ["put", "passcode", "/written", "--passcode-file", passcode])
    #expect(put.code == 0, "\(put.errors)", sourceLocation: sourceLocation)
  }

  @Test func `the passcode changes, and the old one opens nothing, not even an old keybag`() throws {
    try desk.makeVault(withRecoveryKey: false)
    try fill()
    let before = try desk.read("vault/keybag.json")
    expect(
      try desk.run("coffer", ["passcode", "--passcode-file", "wrong", "--new-passcode-file", "new"]), code: 77,
      says: ["the passcode is wrong"])
    expect(try run("passcode"), code: 64, says: ["--new-passcode-file"])
    let changed = try desk.done("passcode", "--new-passcode-file", "new")
    #expect(changed.output.isEmpty && changed.errors == "coffer: the passcode is changed\n")
    expect(try run("ls"), code: 77, says: ["the passcode is wrong"])
    try expectFile("new")
    let after = try desk.read("vault/keybag.json")
    try desk.write("vault/keybag.json", before)
    for passcode in ["passcode", "new"] {
      expect(try run("ls", passcode: passcode), code: 65, says: ["keybag.json", "before its passcode was changed"])
    }
    try desk.write("vault/keybag.json", after)
    // Both passcodes on standard input, a line each; the answer in JSON.
    let both = try desk.run(
      "coffer", ["passcode", "--json", "--passcode-file", "-", "--new-passcode-file", "-"],
      input: Array("\(Self.new)\n\(Desk.passcode)\n".utf8))
    #expect(both.code == 0, "\(both.errors)")
    let answer = try JSONSerialization.jsonObject(with: Data(both.bytes)) as? [String: Any]
    #expect(answer?["changed"] as? Bool == true)
    try expectFile("passcode")
  }

  @Test func `wrong passcodes bring delays that say when to try again, for the right one, too`() throws {
    try desk.makeVault(withRecoveryKey: false)
    for count in 1...5 {
      try desk.write("wrong", "wrong \(count)\n")
      let outcome = try run("ls", passcode: "wrong")
      expect(outcome, code: 77, says: ["the passcode is wrong"])
      if count == 4 { #expect(outcome.errors.contains("after 1 more wrong one nothing is tried for 1 minute")) }
      if count == 5 { #expect(outcome.errors.contains("may be tried in")) }
      // The same again counts for nothing.
      if count < 5 { expect(try run("ls", passcode: "wrong"), code: 77, says: ["the passcode is wrong"]) }
    }
    for command in [["ls"], ["passcode", "--new-passcode-file", "new"]] {
      expect(
        try desk.run("coffer", command + ["--passcode-file", "passcode"]), code: 77,
        says: ["too many wrong passcodes", "try again in"])
    }
    // What is empty is no try, whether or not something may be tried.
    try desk.write("empty", "\n")
    expect(try run("verify", passcode: "empty"), code: 77, says: ["too many wrong passcodes"])
    // Taking the record away makes it worse.
    let id = try #require(try FileManager.default.contentsOfDirectory(atPath: desk.path("keys")).first)
    try desk.remove("keys/\(id)/attempts")
    expect(try run("ls"), code: 77, says: ["try again in 60 minutes"])
  }

  @Test func `an empty passcode is refused and counts for nothing`() throws {
    try desk.done("init", "--no-recovery-key", "--wipe-after-10")
    let id = try #require(try FileManager.default.contentsOfDirectory(atPath: desk.path("keys")).first)
    let before = try desk.read("keys/\(id)/attempts")
    for text in ["", "\n", "\r\n"] {
      try desk.write("empty", text)
      for command in [["ls"], ["unlock"], ["passcode", "--new-passcode-file", "new"]] {
        expect(
          try desk.run("coffer", command + ["--passcode-file", "empty"]), code: 64, says: ["the passcode is empty"])
      }
    }
    #expect(try desk.read("keys/\(id)/attempts") == before)
    try desk.done("ls")
  }

  @Test func `a recovery key is shown once, and opens the vault with a new passcode here and elsewhere`() throws {
    let made = try desk.done("init", "--recovery-key-file", "recovery")
    #expect(made.value.count == 32)
    let key = String(decoding: try desk.read("recovery"), as: UTF8.self).trimmingCharacters(in: .newlines)
    #expect(key.wholeMatch(of: /([0-9A-HJKMNP-TV-Z]{4}-){8}[0-9A-HJKMNP-TV-Z]{4}/) != nil)
    let mode = try FileManager.default.attributesOfItem(atPath: desk.path("recovery"))[.posixPermissions] as? Int
    #expect(mode == 0o600)
    #expect(!made.errors.contains(key) && !made.output.contains(key))
    try fill()
    for path in desk.listing("vault", "keys", "logs").compactMap({ $0.split(separator: " ").first.map(String.init) })
    where !path.hasSuffix("/") {
      #expect(try !Data(desk.read(path)).contains(Data(key.utf8)), "\(path)")
    }
    // Mistyped, another vault's, and what is no key.
    var slip = Array(key)
    slip[3] = slip[3] == "2" ? "3" : "2"
    try desk.write("slip", String(slip))
    expect(
      try done(["recover", "--recovery-key-file", "slip", "--new-passcode-file", "new"]), code: 64, says: ["mistyped"])
    try desk.done("init", "--vault", "other", "--recovery-key-file", "other-recovery")
    expect(
      try done(["recover", "--recovery-key-file", "other-recovery", "--new-passcode-file", "new"]), code: 77,
      says: ["not this vault's"])
    expect(try done(["recover", "--new-passcode-file", "new"]), code: 64, says: ["--recovery-key-file"])
    try expectFile("passcode")

    try desk.copy("vault", to: "moved")
    let recovered = try done("recover", "--recovery-key-file", "recovery", "--new-passcode-file", "new")
    #expect(recovered.output.hasPrefix("recovered"))
    expect(try run("ls"), code: 77, says: ["the passcode is wrong"])
    try expectFile("new")

    // Elsewhere, without the key store.
    desk.environment["COFFER_VAULT"] = desk.path("moved")
    desk.environment["COFFER_KEY_STORE"] = desk.path("other-keys")
    expect(try run("ls"), code: 77, says: ["--key-store"])
    _ = try done(
      "recover", "--recovery-key-file", "recovery", "--passcode-file", "new", "--new-recovery-key-file", "second")
    try expectFile("new")
    expect(
      try done(["recover", "--recovery-key-file", "recovery", "--new-passcode-file", "new"]), code: 77,
      says: ["was replaced"])
    _ = try done("recover", "--recovery-key-file", "second", "--new-passcode-file", "passcode")
    try expectFile("passcode")
    expect(try run("init", "--vault", "third", "--recovery-key-file", "second"), code: 73, says: ["already"])
    #expect(!desk.exists("third"))
  }

  private func done(_ arguments: [String]) throws -> RunningProgram.Outcome { try desk.run("coffer", arguments) }

  @Test func `without a file the recovery key is shown, in JSON where that is asked for`() throws {
    let outcome = try desk.done("init", "--json")
    let answer = try JSONSerialization.jsonObject(with: Data(outcome.bytes)) as? [String: Any]
    let key = try #require(answer?["recoveryKey"] as? String)
    #expect(answer?["vaultID"] is String && outcome.errors.isEmpty)
    let recovered = try desk.run(
      "coffer", ["recover", "--recovery-key-file", "-", "--passcode-file", "new"], input: Array(key.utf8))
    #expect(recovered.code == 0, "\(recovered.errors)")
    let onTerminal = try desk.onTerminal("init", "--vault", "second", typed: "")
    #expect(onTerminal.output.contains(/([0-9A-Z]{4}-){8}[0-9A-Z]{4}/), "\(onTerminal.output)")
    try desk.done("init", "--vault", "none", "--no-recovery-key")
    expect(
      try desk.run("coffer", ["recover", "--vault", "none", "--recovery-key-file", "-"], input: Array(key.utf8)),
      code: 66, says: ["no recovery key"])
    expect(
      try run("init", "--vault", "x", "--no-recovery-key", "--recovery-key-file", "f"), code: 64, says: ["Either"])
  }

  @Test func `a company's key opens what its person gave it, and the person is told`() throws {
    let made = try done("escrow", "keygen", "company.key")
    try desk.write("company.pub", made.output)
    expect(try done(["escrow", "keygen", "company.key"]), code: 73, says: ["already"])
    let initialised = try desk.done("init", "--no-recovery-key", "--escrow-key", "company.pub")
    #expect(initialised.errors.contains("without you, your passcode and this device"))
    try fill()
    #expect(try desk.done("info").output.contains("a company's key opens the vault, too"))
    _ = try done("escrow", "keygen", "other.key")
    expect(
      try done(["recover", "--escrow-key-file", "other.key", "--new-passcode-file", "new"]), code: 77,
      says: ["not the one"])
    expect(
      try done(["recover", "--escrow-key-file", "company.pub", "--new-passcode-file", "new"]), code: 65,
      says: ["escrow key"])
    _ = try done("recover", "--escrow-key-file", "company.key", "--new-passcode-file", "new")
    try expectFile("new")
    for wrong in ["passcode", "company.key"] {
      expect(try run("init", "--vault", "x", "--escrow-key", wrong), code: 65, says: ["escrow key"])
    }
    #expect(!desk.exists("x"))
    // Given later, with a change of the passcode.
    try desk.done("init", "--vault", "later", "--no-recovery-key")
    let changed = try desk.done(
      "passcode", "--vault", "later", "--new-passcode-file", "new", "--escrow-key", "company.pub")
    #expect(changed.errors.contains("without you"))
    _ = try done(
      "recover", "--vault", "later", "--escrow-key-file", "company.key", "--new-passcode-file", "passcode")
  }

  @Test func `a wipe asks for the vault's name, and leaves nothing`() throws {
    try desk.makeVault(withRecoveryKey: false)
    try fill()
    try desk.copy("vault", to: "copy")
    expect(try done(["wipe"]), code: 64, says: ["--yes"])
    for typed in ["\n", "yes\n"] {
      let refused = try desk.onTerminal("wipe", typed: typed)
      #expect(refused.code == 64 && refused.output.contains("type the vault's name (vault)"), "\(refused.output)")
    }
    try expectFile("passcode")
    let wiped = try desk.onTerminal("wipe", typed: "vault\n")
    #expect(wiped.code == 0 && wiped.output.contains("only where a copy of the key store was kept"), "\(wiped.output)")
    #expect(!desk.exists("vault") && desk.listing("keys").isEmpty)
    desk.environment["COFFER_VAULT"] = desk.path("copy")
    expect(try run("ls"), code: 77, says: ["key store holds no secret"])
    expect(try done(["wipe", "--yes", "--vault", "absent"]), code: 66, says: ["no vault"])
    expect(try done(["wipe", "--yes", "--vault", "logs"]), code: 66, says: ["not a vault"])
    #expect(desk.exists("logs"))
    // The key store has no key of it any more.
    expect(try done(["wipe", "--yes"]), code: 77, says: ["nothing was destroyed", "--key-store"])
    expect(try done(["wipe", "--yes", "--all-copies"]), code: 77, says: ["nothing was destroyed", "--key-store"])
    #expect(desk.exists("copy/keybag.json"))
    try desk.done("init", "--vault", "json", "--no-recovery-key")
    let json = try done("wipe", "--yes", "--json", "--vault", "json")
    let answer = try JSONSerialization.jsonObject(with: Data(json.bytes)) as? [String: Any]
    #expect(answer?["complete"] as? Bool == true && answer?["keysDestroyed"] as? Bool == true)
  }

  @Test func `a wipe of a copy, of a forged folder or with another key store leaves the vault`() throws {
    try desk.makeVault(withRecoveryKey: false)
    try fill()
    try desk.done("backup", "backup")
    try desk.copy("vault", to: "copy")
    try FileManager.default.createDirectory(atPath: desk.path("forged"), withIntermediateDirectories: false)
    try desk.copy("vault/coffer.json", to: "forged/coffer.json")
    for (path, words) in [("backup", "a copy"), ("copy", "a copy"), ("forged", "somebody else's")] {
      expect(
        try done(["wipe", "--yes", "--vault", path]), code: 77, says: ["nothing was destroyed", words, "--all-copies"])
      #expect(desk.exists(path + "/coffer.json"))
    }
    expect(
      try done(["wipe", "--yes", "--key-store", "none"]), code: 77, says: ["nothing was destroyed", "--key-store"])
    try expectFile("passcode")
    try FileManager.default.moveItem(atPath: desk.path("vault"), toPath: desk.path("moved"))
    #expect(try done("wipe", "--yes", "--vault", "moved").output.hasPrefix("wiped. "))
    expect(try run("ls", "--vault", "backup"), code: 77, says: ["key store holds no secret"])
  }

  @Test func `a wipe of a vault in use destroys the keys at once, and the rest later`() throws {
    try desk.done("init", "--recovery-key-file", "recovery")
    try fill()
    try desk.copy("vault", to: "copy")
    let holder = try desk.start("coffer", ["put", "-", "/x", "--passcode-file", "passcode"])
    #expect(holder.send(noise(1 << 20)))
    expect(
      try done(["wipe", "--yes"]), code: 75,
      says: ["the keys are destroyed", "process \(holder.processID)", "its recovery key"])
    #expect(!desk.exists("vault/keybag.json"))
    _ = holder.wait()
    expect(try run("ls"), code: 77, says: ["was wiped"])
    #expect(try done("wipe", "--yes").output.hasPrefix("wiped"))
    #expect(!desk.exists("vault") && desk.listing("keys").isEmpty)
    // The copy has its recovery key.
    desk.environment["COFFER_VAULT"] = desk.path("copy")
    _ = try done("recover", "--recovery-key-file", "recovery", "--new-passcode-file", "new")
    try expectFile("new")
  }

  @Test func `info says what a try costs`() throws {
    try desk.done("init", "--no-recovery-key", "--wipe-after-10")
    let text = try desk.done("info").output
    #expect(text.contains("MiB for each try") && text.contains("after ten wrong passcodes"))
    let outcome = try desk.done("info", "--json")
    let info = try #require(try JSONSerialization.jsonObject(with: Data(outcome.bytes)) as? [String: Any])
    let exponent = try #require(info["costExponent"] as? Int)
    #expect((15...18).contains(exponent) && info["memory"] as? Int == 1024 << exponent)
    #expect(info["recoveryKey"] as? Bool == false && info["wipeAfterTen"] as? Bool == true)
    try desk.done("passcode", "--new-passcode-file", "new", "--no-wipe-after-10")
    #expect(try run("info", passcode: "new").output.contains("never for wrong passcodes"))
  }
}
