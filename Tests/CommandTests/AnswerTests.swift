import Foundation
import Testing

/// What a script is told by `--json` of a command that shows a person nothing.
@Suite struct AnswerTests {
  let desk: Desk

  init() throws {
    desk = try Desk()
    try desk.makeVault(withRecoveryKey: false)
  }

  private func answer(code: Int32 = 0, _ arguments: String...) throws -> [String: Any] {
    let outcome = try desk.run("coffer", arguments + ["--json", "--passcode-file", "passcode"])
    #expect(outcome.code == code && outcome.errors.isEmpty == (code == 0), "\(arguments): \(outcome.errors)")
    return try #require(try JSONSerialization.jsonObject(with: Data(outcome.bytes)) as? [String: Any])
  }

  private func expect(
    _ answer: [String: Any], _ counts: [String: Int], from: String, to: String,
    sourceLocation: SourceLocation = #_sourceLocation
  ) {
    for (name, count) in counts { #expect(answer[name] as? Int == count, "\(name)", sourceLocation: sourceLocation) }
    let items = answer["items"] as? [[String: String]]
    #expect(items == [["from": from, "to": to]], "\(answer)", sourceLocation: sourceLocation)
  }

  @Test func `each says what was done, with the paths that came of it`() throws {
    let first = try answer("mkdir", "-p", "reports//2024/")
    #expect(first["path"] as? String == "/reports/2024" && first["made"] as? Bool == true)
    #expect(try answer("mkdir", "-p", "/reports/2024")["made"] as? Bool == false)

    let made = try desk.shell(
      "mkdir -p tree/a && printf 12345 > tree/a/five && printf 123 > tree/three && ln -s a tree/link && mkfifo tree/fifo"
    )
    try #require(made.code == 0)
    let stored = try answer(code: 73, "put", "-r", "tree", "/reports")
    expect(
      stored, ["files": 2, "folders": 2, "links": 1, "bytes": 8, "skippedCount": 1], from: "tree", to: "/reports/tree")
    let skipped = try #require(stored["skipped"] as? [[String: String]])
    #expect(skipped.map { $0["path"] } == ["tree/fifo"])
    #expect(skipped.first?["reason"]?.contains("only files") == true)
    let single = try answer("put", "passcode", "/reports/renamed")
    expect(
      single, ["files": 1, "folders": 0, "bytes": Desk.passcode.count + 1], from: "passcode", to: "/reports/renamed")

    let copied = try answer("get", "-r", "/reports/tree", "out")
    expect(
      copied, ["files": 2, "folders": 2, "links": 1, "bytes": 8, "skippedCount": 0], from: "/reports/tree",
      to: "out/tree")
    // Where the content itself goes to standard output nothing else does.
    #expect(try desk.done("get", "--json", "/reports/tree/three", "-").output == "123")

    let moved = try answer("mv", "/reports/renamed", "/reports/2024/")
    #expect(moved as? [String: String] == ["from": "/reports/renamed", "to": "/reports/2024/renamed"])
    let protected = try answer("protect", "/reports/2024/renamed", "none")
    #expect(protected as? [String: String] == ["path": "/reports/2024/renamed", "protection": "none"])
    let removed = try answer("rm", "-r", "/reports/tree", "/reports/2024/renamed")
    #expect(removed["removed"] as? [String] == ["/reports/tree", "/reports/2024/renamed"])
    #expect(removed["items"] as? Int == 6)
    #expect(try desk.done("ls", "-R").output == "reports/\nreports/2024/\n")
    // A failure answers nothing on standard output.
    try desk.refused(66, "no such file", running: ["rm", "--json", "/absent"])
  }
}
