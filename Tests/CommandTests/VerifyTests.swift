import Foundation
import Glibc
import Testing

/// What a person hears who asks whether a vault is whole.
@Suite struct VerifyTests {
  let desk: Desk

  init() throws {
    desk = try Desk()
    try desk.makeVault()
    try desk.done("mkdir", "/folder")
    try desk.done("put", "-", "/folder/secret-plan.pdf", input: noise(300_000))
    try desk.done("put", "-", "/note", input: noise(500))
  }

  @Test func `a whole vault is clean, and what was checked is said`() throws {
    for (arguments, depth) in [(["verify"], "every name; --deep"), (["verify", "--deep"], "all content")] {
      let outcome = try desk.run("coffer", arguments + ["--passcode-file", "passcode"])
      #expect(outcome.code == 0, "\(outcome.errors)")
      #expect(outcome.errors.isEmpty)
      #expect(outcome.output.contains(depth))
      #expect(outcome.output.contains("files      2, 293.5 KiB\nfolders    2\nintact     4\ndamaged    nothing\n"))
    }
    let found = try findings(code: 0, "--deep")
    #expect(found["clean"] as? Bool == true && found["deep"] as? Bool == true && found["readOnly"] as? Bool == false)
    #expect(found["files"] as? Int == 2 && found["bytes"] as? Int == 300_500 && found["intact"] as? Int == 4)
  }

  @Test func `a tampered block is found by a deep look, and its file is named only when asked`() throws {
    try desk.damageLargestObject()
    try desk.done("verify")
    let counted = try desk.coffer("verify", "--deep")
    #expect(counted.code == 65)
    #expect(counted.output.contains("intact     3\ndamaged    1\n  blocks of a file's content, 16.0 KiB lost\n"))
    #expect(counted.errors.contains("coffer rm") && counted.errors.contains("backup"))
    #expect(!(counted.output + counted.errors).contains("secret-plan"))
    let named = try desk.coffer("verify", "--deep", "--names")
    #expect(named.code == 65)
    #expect(
      named.output.contains(
        "  /folder/secret-plan.pdf: blocks of a file's content, 16.0 KiB of 293.0 KiB lost\n"), "\(named.output)")
    #expect(!named.errors.contains("secret-plan"))

    let found = try findings(code: 65, "--deep")
    #expect(found["clean"] as? Bool == false && found["damages"] as? Int == 1)
    let sorts = try #require(found["found"] as? [[String: Any]])
    #expect(sorts.first?["lost"] as? Int == 16_384 && sorts.first?["path"] == nil)
    let files = try #require(try findings(code: 65, "--deep", "--names")["found"] as? [[String: Any]])
    #expect(files.first?["path"] as? String == "/folder/secret-plan.pdf" && files.first?["size"] as? Int == 300_000)

    // What the message advises helps.
    try desk.done("rm", "/folder/secret-plan.pdf")
    try desk.done("verify", "--deep")
  }

  @Test func `a row that was taken away is found without a deep look, and the rest can be taken out`() throws {
    try FileManager.default.createDirectory(atPath: desk.path("tree"), withIntermediateDirectories: false)
    for number in 0..<300 { try desk.write("tree/secret-\(number)", [1, 2, 3]) }
    try desk.done("put", "-r", "tree", "/")
    try desk.copy("vault", to: "whole")
    var (row, named) = (0, Set<String>())
    repeat {
      // Not one beside the folder's own, without which nothing in it is found: of groups of 64 rows the folder is in one.
      row += 64
      try desk.restore("whole", aside: "aside-\(row)")
      try desk.deleteRow(row)
      let found = try findings(code: 65, "--names")
      named = Set((found["found"] as? [[String: Any]] ?? []).compactMap { $0["path"] as? String })
    } while !named.contains { $0.hasPrefix("/tree/") } && row < 256
    let counted = try desk.coffer("verify")
    #expect(counted.code == 65)
    #expect(counted.errors.contains("backup") && counted.errors.contains("new vault"))
    #expect(!(counted.output + counted.errors).contains("secret-"))
    #expect(!named.isEmpty)
    let whole = (0..<300).filter { !named.contains("/tree/secret-\($0)") }
    #expect(whole.count >= 200)
    for number in [whole.first, whole.last] {
      #expect(try desk.done("cat", "/tree/secret-\(try #require(number))").bytes == [1, 2, 3])
    }
  }

  @Test func `an older copy can be verified, and is told as such`() throws {
    try desk.copy("vault", to: "older")
    try desk.done("put", "-", "/newer", input: noise(100))
    try desk.restore("older")
    let outcome = try desk.done("verify", "--deep")
    #expect(outcome.output.contains("state      older than the newest"))
    #expect(outcome.output.contains("damaged    nothing\n"))
    // Said once, and that in the result.
    #expect(outcome.output.contains("coffer accept-restored") && outcome.errors.isEmpty)
    #expect(try findings(code: 0)["readOnly"] as? Bool == true)
  }

  @Test func `a verification that is interrupted ends with its signal and changes nothing`() throws {
    try FileManager.default.createDirectory(atPath: desk.path("tree"), withIntermediateDirectories: false)
    try desk.write("tree/large", noise(1 << 20))
    for number in 0..<150 { try desk.copy("tree/large", to: "tree/large\(number)") }
    try desk.done("put", "-r", "tree", "/")
    let verification = try desk.start("coffer", ["verify", "--deep", "--passcode-file", "passcode"])
    while !desk.exists("vault/index.sqlite-wal") { sched_yield() }
    verification.signal(SIGINT)
    let outcome = verification.wait()
    #expect(outcome.code == 130, "\(outcome.errors)")
    #expect(outcome.bytes.isEmpty)
    try desk.done("verify")
  }

  private func findings(code: Int32, _ arguments: String...) throws -> [String: Any] {
    let outcome = try desk.run("coffer", ["verify", "--json", "--passcode-file", "passcode"] + arguments)
    #expect(outcome.code == code, "\(outcome.errors)")
    return try #require(try JSONSerialization.jsonObject(with: Data(outcome.bytes)) as? [String: Any])
  }
}
