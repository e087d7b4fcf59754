import Foundation
import Testing

/// A backup that was put back in the vault's place.
@Suite struct RestoredTests {
  let desk: Desk

  init() throws {
    desk = try Desk()
    try desk.makeVault()
    try desk.done("put", "-", "/old", input: noise(100_000))
  }

  private func restoreOlder() throws {
    try desk.done("backup", "copy")
    try desk.done("put", "-", "/new", input: noise(500))
    try desk.restore("copy")
  }

  @Test func `it is read only until it is accepted, and is the vault from then on`() throws {
    try restoreOlder()
    let read = try desk.done("cat", "/old")
    #expect(read.bytes == noise(100_000) && read.errors.contains("coffer accept-restored"))
    let info = try desk.done("info")
    #expect(info.output.contains("accept-restored") && info.errors.isEmpty)
    for change in [["put", "passcode", "/x"], ["rm", "/old"], ["mkdir", "/x"], ["mv", "/old", "/x"]] {
      let refused = try desk.refused(
        65, "coffer accept-restored", running: change, unchanged: ["vault/objects", "keys"])
      // Told once.
      #expect(refused.errors.components(separatedBy: "older than").count == 2)
    }
    // Without a terminal nobody can be asked.
    try desk.refused(64, "--yes", "given up", running: ["accept-restored"], unchanged: ["keys"])
    try desk.refused(65, running: ["rm", "/old"])

    let accepted = try desk.done("accept-restored", "--yes")
    #expect(accepted.output == "accepted: this is the vault from now on, and it can be changed\n")
    #expect(accepted.errors.isEmpty)
    let put = try desk.done("put", "-", "/x", input: noise(300))
    #expect(put.errors.isEmpty)
    #expect(try desk.done("ls").output == "old\nx\n")
    try desk.done("verify", "--deep")

    // The newer state, back again, is the one that can only be read.
    try desk.restore("aside", aside: "accepted")
    #expect(try desk.done("ls").output == "new\nold\n")
    try desk.refused(65, "not changed", running: ["rm", "/new"])
  }

  @Test func `a backup from before the passcode was changed says how it is opened, and is`() throws {
    try desk.write("new", "staple battery horse\n")
    desk.environment["COFFER_VAULT"] = desk.path("known")
    try desk.done("init", "--recovery-key-file", "recovery")
    try desk.done("put", "-", "/old", input: noise(100_000))
    try desk.done("backup", "copy")
    try desk.done("backup", "second")
    try desk.done("passcode", "--new-passcode-file", "new")
    let put = try desk.run("coffer", ["put", "-", "/newer", "--passcode-file", "new"], input: noise(300))
    #expect(put.code == 0, "\(put.errors)")

    // With the present keybag, the present passcode opens it to be read.
    try FileManager.default.removeItem(atPath: desk.path("second/keybag.json"))
    try desk.copy("known/keybag.json", to: "second/keybag.json")
    let read = try desk.run("coffer", ["cat", "/old", "--vault", "second", "--passcode-file", "new"])
    #expect(read.bytes == noise(100_000), "\(read.errors)")

    // The vault is lost. Whatever is tried, the next thing to do is the one that works.
    try desk.remove("known")
    try desk.copy("copy", to: "known")
    let recover = ["recover", "--recovery-key-file", "recovery", "--new-passcode-file", "new"]
    for command in [
      ["ls", "--passcode-file", "passcode"], ["ls", "--passcode-file", "new"],
      ["accept-restored", "--yes", "--passcode-file", "new"], recover,
    ] {
      expect(try desk.run("coffer", command), code: 65, says: ["coffer recover --accept-restored"])
    }
    let recovered = try desk.run("coffer", recover + ["--accept-restored"])
    #expect(recovered.code == 0, "\(recovered.errors)")
    let old = try desk.run("coffer", ["cat", "/old", "--passcode-file", "new"])
    #expect(old.bytes == noise(100_000) && old.errors.isEmpty)
    let changed = try desk.run("coffer", ["mv", "/old", "/moved", "--passcode-file", "new"])
    #expect(changed.code == 0, "\(changed.errors)")
  }

  @Test func `a vault at its newest state has nothing to accept`() throws {
    for arguments in [["accept-restored", "--yes"], ["accept-restored"]] {
      try desk.refused(64, "nothing to accept", running: arguments, unchanged: ["vault/objects", "keys"])
    }
    try restoreOlder()
    try desk.write("wrong", "another")
    expect(
      try desk.run("coffer", ["accept-restored", "--yes", "--passcode-file", "wrong"]), code: 77, says: ["passcode"])
    #expect(try json("accept-restored", "--yes")["vaultID"] is String)
    try desk.refused(64, "nothing to accept", running: ["accept-restored", "--yes"])
  }

  @Test func `a vault that the key store does not know is not taken for its owner's`() throws {
    let id = try #require(try json("info")["vaultID"] as? String)
    try desk.remove("keys/\(id)/anchor")
    try desk.refused(77, "key store", running: ["accept-restored", "--yes"], unchanged: ["vault/objects", "keys"])
    #expect(try desk.done("cat", "/old").bytes == noise(100_000))
  }

  private func json(_ arguments: String...) throws -> [String: Any] {
    let outcome = try desk.run("coffer", arguments + ["--json", "--passcode-file", "passcode"])
    return try #require(try JSONSerialization.jsonObject(with: Data(outcome.bytes)) as? [String: Any])
  }

  @Test func `the vault's name is asked for, and nothing else will do`() throws {
    try restoreOlder()
    for typed in ["\n", "y\n", "vault \n", "Vault\n"] {
      let refused = try desk.onTerminal("accept-restored", typed: typed)
      #expect(refused.code == 64, "\(refused.output)")
      #expect(refused.output.contains("type the vault's name (vault):"))
      #expect(refused.output.contains("given up") && refused.output.contains("not the vault's name"))
    }
    try desk.refused(65, running: ["rm", "/old"])
    let accepted = try desk.onTerminal("accept-restored", typed: "vault\n")
    #expect(accepted.code == 0, "\(accepted.output)")
    #expect(accepted.output.contains("accepted:"))
    try desk.done("rm", "/old")
  }

  @Test func `a company's policy does not go back, and a refresh brings the present one`() async throws {
    let server = try RunningServer(at: desk)
    try await server.allowOwner(["saveCopy", "import"])
    try desk.done("enroll", server.url, server.enrollmentCode())
    try desk.done("backup", "copy")
    try await server.allowOwner(["import"])
    try desk.done("policy", "refresh")
    try desk.refused(77, "saveCopy", running: ["get", "/old", "out"], unchanged: ["out"])
    try desk.restore("copy")
    // The copy's policy would let the file out; it is not the newest that this device has applied.
    try desk.refused(77, running: ["get", "/old", "out"], unchanged: ["out"])
    try desk.refused(64, "policy cannot go back", "policy refresh", running: ["accept-restored"])
    let accepted = try desk.done("accept-restored", "--yes")
    #expect(accepted.errors.contains("policy refresh"))
    #expect(try desk.done("info").output.contains("policy refresh"))
    for arguments in [["get", "/old", "out"], ["put", "passcode", "/x"]] {
      try desk.refused(77, "Refresh the policy", running: arguments, unchanged: ["out"])
    }
    try desk.refused(73, "belongs to a company already", running: ["enroll", server.url, server.enrollmentCode()])
    try desk.done("policy", "refresh")
    try desk.refused(77, "saveCopy", running: ["get", "/old", "out"], unchanged: ["out"])
    try desk.done("put", "passcode", "/x")
    try await server.allowOwner(["saveCopy"])
    try desk.done("policy", "refresh")
    try desk.done("get", "/old", "out")
    #expect(server.stop().code == 0)
  }

  @Test func `a backup from before the company does not lead out of it`() async throws {
    let server = try RunningServer(at: desk)
    try desk.done("backup", "copy")
    try desk.done("enroll", server.url, server.enrollmentCode())
    try desk.restore("copy")
    try desk.refused(64, "before it joined", running: ["accept-restored"])
    try desk.done("accept-restored", "--yes")
    try desk.refused(77, running: ["get", "/old", "out"], unchanged: ["out"])
    try desk.refused(73, running: ["enroll", server.url, server.enrollmentCode()])
    #expect(try desk.done("ls").output == "old\n")
    #expect(server.stop().code == 0)
  }
}
