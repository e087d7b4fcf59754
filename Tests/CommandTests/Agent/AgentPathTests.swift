import Foundation
import Glibc
import Testing

/// Paths that mean something else in each process: through the agent they mean what they mean to the client.
@Suite final class AgentPathTests {
  let desk: Desk
  static let content = noise(200_000, seed: 11)

  init() throws {
    desk = try Desk()
    try desk.makeVault()
    try desk.write("source", Self.content)
    try desk.write("password", "a password\n")
    // Where something is to be written, a link of the desk's own: a mistake must not replace the system's.
    for (name, target) in [
      ("link", "/dev/fd/7"), ("stdout", "/dev/stdout"), ("stderr", "/dev/stderr"), ("tty", "/dev/tty"),
    ] {
      symlink(target, desk.path(name))
    }
    try FileManager.default.createDirectory(atPath: desk.path("folder"), withIntermediateDirectories: false)
  }

  deinit { _ = try? desk.run("coffer", ["agent", "stop"]) }

  /// Runs a line of bash through the agent, or where `agent` is false by a command that opens the vault itself.
  @discardableResult
  private func line(_ line: String, agent: Bool, input: [UInt8] = []) throws -> RunningProgram.Outcome {
    let options = agent ? "" : "--passcode-file passcode"
    return try desk.shell("coffer() { command coffer \"$@\" \(options); }; " + line, input: input)
  }

  @Test(arguments: [false, true])
  func `a source is the client's descriptor`(agent: Bool) throws {
    if agent { try desk.unlock() }
    let up = String(repeating: "../", count: desk.root.split(separator: "/").count)
    let lines = [
      "coffer put /dev/stdin /a < source", "cat source | coffer put /dev/stdin /a", "coffer put /dev/fd/7 /a 7<source",
      "coffer put /dev/../dev//./fd/7 /a 7<source", "coffer put /proc/self/fd/7 /a 7<source",
      "coffer put /proc/thread-self/fd/0 /a <source", "coffer put <(cat source) /a", "coffer put link /a 7<source",
      "coffer put \(up)dev/fd/7 /a 7<source",
      "cd folder && coffer put ../link /a 7<../source --vault ../vault"
        + (agent ? "" : " --passcode-file ../passcode"),
      "coffer put - /a < source", "cat source | coffer put /dev/fd/0 /a", "coffer put -r /dev/fd/5/source /a 5<.",
    ]
    for text in lines {
      let cut = text.hasPrefix("cd") ? text.replacing("coffer put", with: "command coffer put") : text
      let outcome = try line(cut, agent: agent)
      #expect(outcome.code == 0, "\(text): \(outcome.errors)")
      let read = try line("coffer cat /a; coffer rm /a", agent: agent)
      #expect(read.bytes == Self.content, "\(text): \(read.bytes.count)")
    }
    // Several at once, and the same twice.
    let many = try line(
      "coffer mkdir /m; coffer put /dev/stdin /dev/fd/7 <(cat password) link /m < source 7<password; coffer ls /m",
      agent: agent)
    #expect(many.code == 0 && many.output.hasPrefix("63\n7\nlink\nstdin\n"), "\(many.output) \(many.errors)")
    #expect(try line("coffer cat /m/stdin", agent: agent).bytes == Self.content)
    for name in ["7", "63", "link"] {
      #expect(try line("coffer cat /m/\(name)", agent: agent).output == "a password\n", "\(name)")
    }
  }

  @Test(arguments: [false, true])
  func `a destination is the client's descriptor`(agent: Bool) throws {
    if agent { try desk.unlock() }
    #expect(try line("coffer put source /a", agent: agent).code == 0)
    #expect(try line("coffer get /a stdout", agent: agent).bytes == Self.content)
    #expect(try line("coffer get /a stdout | cat", agent: agent).bytes == Self.content)
    #expect(try line("coffer get /a stderr 2>&1 >/dev/null", agent: agent).bytes == Self.content)
    for text in [
      "coffer get /a stdout > out/copy", "coffer get /a /dev/fd/8 8>out/copy", "coffer get /a link 7>out/copy",
      "mkdir out/a; coffer get /a /dev/fd/5 5<out/a; mv out/a/a out/copy; rmdir out/a",
      "coffer get /a /dev/fd/5/copy 5<out", "coffer get /a /proc/self/fd/5/ 5<out; mv out/a out/copy",
      "coffer get /a >(cat > out/copy); wait $!",
    ] {
      let outcome = try line(text, agent: agent)
      #expect(outcome.code == 0, "\(text): \(outcome.errors)")
      #expect(desk.listing("out") == ["out/copy \(Self.content.count)"], "\(text)")
      #expect(try desk.read("out/copy") == Self.content, "\(text)")
      try desk.remove("out/copy")
    }
    for (name, target) in [("link", "/dev/fd/7"), ("stdout", "/dev/stdout"), ("stderr", "/dev/stderr")] {
      #expect(try FileManager.default.destinationOfSymbolicLink(atPath: desk.path(name)) == target)
    }
    // A device or a fifo is not replaced by a file.
    #expect(mkfifo(desk.path("out/fifo"), 0o600) == 0)
    expect(try line("coffer get /a out/fifo", agent: agent), code: 73, says: ["neither a file nor a folder"])
  }

  @Test(arguments: [false, true])
  func `secrets come from the client's descriptors`(agent: Bool) throws {
    if agent { try desk.unlock() }
    #expect(try line("coffer put source /a", agent: agent).code == 0)
    let option = "--rncryptor-password-file"
    for text in [
      "coffer export --rncryptor \(option) /dev/fd/6 /a sealed 6<password",
      "coffer export --rncryptor \(option)=/dev/fd/6 /a stdout 6<password >sealed",
      "coffer export --rncryptor \(option) <(cat password) /a sealed",
    ] {
      #expect(try line(text, agent: agent).code == 0, "\(text)")
      let back = try line(
        "coffer import --rncryptor \(option) <(cat password) /dev/fd/9 /b 9<sealed && coffer cat /b", agent: agent)
      #expect(back.bytes == Self.content, "\(text): \(back.errors)")
      try desk.remove("sealed")
    }
    let change = try desk.shell(
      "coffer passcode --passcode-file <(cat passcode) --new-passcode-file /dev/fd/6 6<password"
        + " --new-recovery-key-file /dev/fd/5/recovery 5<out")
    #expect(change.code == 0, "\(change.errors)")
    #expect(desk.exists("out/recovery"))
    _ = try desk.run("coffer", ["agent", "stop"])
    let opened = try desk.shell("coffer cat /a --passcode-file <(cat password)")
    #expect(opened.bytes == Self.content, "\(opened.errors)")
  }

  @Test(arguments: [false, true])
  func `the client's terminal is read and written`(agent: Bool) throws {
    if agent { try desk.unlock() }
    let options = agent ? "" : "--passcode-file passcode"
    let read = try desk.run(
      "/usr/bin/script", ["-qec", "stty -echo; '\(coffer)' put /dev/tty /typed \(options)", "/dev/null"],
      input: Array("a line\n\u{4}".utf8))
    #expect(read.code == 0, "\(read.output)")
    #expect(try line("coffer cat /typed", agent: agent).output == "a line\n")
    let written = try desk.run(
      "/usr/bin/script", ["-qec", "'\(coffer)' get /typed tty \(options) >/dev/null 2>&1", "/dev/null"])
    #expect(written.output == "a line\r\n")
  }

  private var coffer: String { RunningProgram.folder.appendingPathComponent("coffer").path }

  @Test func `what is the agent's own is given to nobody`() throws {
    try desk.unlock()
    let agent = try desk.agentProcess()
    symlink("/proc/self", desk.path("own"))
    try desk.served("put", "password", "/stolen")
    for path in [
      "/dev/fd/9", "/proc/self/fd/12", "/proc/self/environ", "/proc/thread-self/environ", "/proc/self/cwd/vault",
      "/proc/\(agent)/environ", "/proc/\(agent)/fd/4", "/proc/\(agent)/task/\(agent)/fd/4", "own/environ", "own/maps",
      "/proc/self/root\(desk.path("source"))", "/dev/fd", "/proc/1/../self/status",
    ] {
      try desk.unserved(66, "no such file", "put", "-r", path, "/taken")
      if path.hasPrefix("/proc") { try desk.unserved(66, "no such file", "get", "/stolen", path) }
      try desk.unserved(66, "no such file", "import", "--rncryptor", path, "/stolen", "--rncryptor-key-file", path)
      try desk.unserved(66, "no such file", "passcode", "--passcode-file", path)
      try desk.unserved(66, "no such file", "backup", path + "/backup")
      try desk.unserved(66, "no such file", "mount", path)
    }
    #expect(try desk.served("ls", "-R").output == "stolen\n")
    try desk.served("rm", "/stolen")
    // What only passes by is an ordinary path.
    try desk.served("put", "/proc/self/../..\(desk.path("source"))", "/a")
    #expect(try desk.served("cat", "/a").bytes == Self.content)
  }

  @Test func `a command that opens the vault itself gives nothing of its own either`() throws {
    for number in 4..<16 {
      try desk.refused(66, "no such file", running: ["put", "/dev/fd/\(number)", "/stolen"])
      try desk.refused(
        66, "no such file",
        running: ["import", "--rncryptor", "--rncryptor-key-file", "/dev/fd/\(number)", "source", "/"])
    }
  }

  @Test func `more descriptors than the agent takes are refused in words`() throws {
    try desk.unlock()
    let numbers = 20..<40
    let paths = numbers.map { "/dev/fd/\($0)" }.joined(separator: " ")
    let opened = numbers.map { "\($0)<source" }.joined(separator: " ")
    let outcome = try desk.shell("coffer mkdir /m; coffer put \(paths) /m \(opened)")
    #expect(outcome.code == 64 && outcome.errors.contains("at most 16"), "\(outcome.errors)")
    let some = numbers.prefix(16).map { "/dev/fd/\($0)" }.joined(separator: " ")
    #expect(try desk.shell("coffer put \(some) /m \(opened)").code == 0)
    #expect(try desk.served("ls", "/m").output.split(separator: "\n").count == 16)
  }
}
