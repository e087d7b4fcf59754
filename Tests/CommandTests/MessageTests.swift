import Foundation
import Glibc
import Testing

/// What a refusal says of the path it is about: its name to whoever typed it at a terminal, and none to anything else.
@Suite final class MessageTests {
  let desk: Desk

  init() throws {
    desk = try Desk()
    try desk.makeVault(withRecoveryKey: false)
    try desk.done("mkdir", "/folder")
    try desk.write("text", "text\n")
  }

  deinit { _ = try? desk.run("coffer", ["agent", "stop"]) }

  @Test func `on a terminal a refusal names the path, and elsewhere none of the vault's`() throws {
    try FileManager.default.createDirectory(atPath: desk.path("out/folder"), withIntermediateDirectories: false)
    let refusals: [(Int32, [String], String, String)] = [
      (66, ["rm", "/folder/absent"], "/folder/absent", "no such file"),
      (64, ["rm", "/folder"], "/folder", "use -r"),
      (73, ["mkdir", "/folder"], "/folder", "the name is taken"),
      (66, ["mkdir", "/gone/below"], "/gone/below", "with -p"),
      (66, ["mv", "/gone", "/x"], "/gone", "no such file"),
      (66, ["mv", "/folder", "/gone/x"], "/gone/x", "the folder that it should go to"),
      (66, ["get", "/gone", "out"], "/gone", "no such file"),
      (64, ["get", "/folder", "out"], "/folder", "use -r"),
      (66, ["cat", "/gone"], "/gone", "no such file"),
      (66, ["ls", "/gone"], "/gone", "no such file"),
      (66, ["protect", "/gone", "none"], "/gone", "no such file"),
      (66, ["put", "text", "/gone/text"], "/gone", "coffer mkdir -p"),
      (64, ["put", "text", "/folder/\(String(repeating: "x", count: 256))"], "/folder/x", "1 to 255 bytes"),
    ]
    // Through the agent, which is at no terminal: that of the client is what counts.
    for isServed in [false, true] {
      if isServed { try desk.unlock() }
      for (code, arguments, path, says) in refusals {
        let shown = try desk.onTerminal(arguments.joined(separator: " "), typed: "")
        #expect(shown.code == code)
        #expect(shown.output.contains("coffer: \(path)") && shown.output.contains(says), "\(shown.output)")
        let logged = try desk.refused(code, says, running: arguments)
        #expect(!logged.errors.contains(path), "\(logged.errors)")
      }
    }
    let named = try desk.onTerminal("get -r /folder/absent out", typed: "")
    #expect(named.code == 66 && named.output.contains("coffer: /folder/absent: no such file"))
    for arguments in [["put", "", "/x"], ["put", "text", ""], ["get", "/folder", ""]] {
      try desk.refused(64, "empty", running: arguments)
    }
  }

  @Test func `what is passed over is named with its reason, and not without end`() throws {
    let made = try desk.shell(
      "mkdir tree && for n in $(seq 12); do mkfifo tree/fifo-$n; done && mkfifo $'tree/\\e[2J' && echo 1 > tree/file")
    try #require(made.code == 0, "\(made.errors)")
    let shown = try desk.onTerminal("put -r tree /", typed: "")
    #expect(shown.code == 73)
    #expect(shown.output.components(separatedBy: ": not stored: only files, folders and symbolic links").count == 11)
    #expect(shown.output.contains("coffer: tree/fifo-") && shown.output.contains("13 item(s) were not stored"))
    #expect(shown.output.contains("--json") && !shown.output.contains("\u{1b}[2J"))
    let logged = try desk.refused(73, "13 item(s) were not stored", "--json", running: ["put", "-r", "tree", "/"])
    #expect(!logged.errors.contains("fifo-"))
  }
}
