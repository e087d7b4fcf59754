import CofferSystem
import Foundation
import Glibc
import Testing

/// What others on the same machine can learn from the programs and their files.
@Suite struct SecrecyTests {
  let desk: Desk

  init() throws { desk = try Desk() }

  @Test func `neither program leaves its memory behind`() throws {
    try desk.done("init")
    let coffer = RunningProgram.folder.appendingPathComponent("coffer").path
    let server = RunningProgram.folder.appendingPathComponent("coffer-server").path
    for command in [
      "\(coffer)' put - /x --passcode-file passcode", "\(server)' run --data server --listen 127.0.0.1:0",
    ] {
      // As on a machine where core dumps are wanted.
      let program = try desk.start("/bin/sh", ["-c", "umask 000; ulimit -c unlimited; exec '\(command)"])
      if command.contains("put") { #expect(program.send(noise(1 << 20))) } else { _ = program.line() }
      let limits = try KernelFile.text(of: "/proc/\(program.processID)/limits")
      let core = try #require(limits.split(separator: "\n").first { $0.hasPrefix("Max core file size") })
      #expect(core.split(separator: " ").filter { $0 == "0" }.count == 2, "\(core)")
      program.signal(SIGABRT)
      let outcome = program.wait()
      #expect(outcome.code == 128 + SIGABRT)
      #expect(!outcome.hasDumpedCore)
      // The language's own crash report shows memory beside the registers.
      #expect(!outcome.errors.contains("Registers") && !outcome.errors.contains("crashed"))
    }
    // The control: a program that does not forbid it has the limit that it was given.
    let plain = try desk.run(
      "/bin/sh", ["-c", "ulimit -c unlimited; exec grep 'Max core file size' /proc/self/limits"])
    #expect(plain.output.contains("unlimited"))

    // The person's umask lends nothing.
    let open = desk.listing("vault", "keys", "server").map { $0.split(separator: " ")[0] }.map(String.init)
    #expect(open.count > 8)
    for path in open + ["vault", "keys", "server"] {
      let mode = try FileManager.default.attributesOfItem(atPath: desk.path(path))[.posixPermissions] as? Int ?? 0o777
      #expect(mode & 0o077 == 0, "\(path) has \(String(mode, radix: 8))")
    }
  }

  @Test func `neither names, content nor the passcode show in what is stored, also while it is open`() throws {
    let canary = "CANARY-\(UUID().uuidString)"
    try desk.done("init")
    try desk.done("mkdir", "/\(canary)")
    try desk.done("put", "-", "/\(canary)/small", input: Array(canary.utf8))
    let large = Array(repeating: Array(canary.utf8), count: 4000).flatMap { $0 }
    try desk.done("put", "-", "/\(canary)/\(canary)", input: large)
    try desk.refused(66, running: ["cat", "/\(canary)-absent"])
    try desk.refused(73, running: ["mkdir", "/\(canary)"])
    let holder = try desk.start("coffer", ["put", "-", "/\(canary)-open", "--passcode-file", "passcode"])
    for _ in 0..<20 { #expect(holder.send(large)) }
    #expect(try places(of: canary).isEmpty)
    #expect(holder.wait().code == 0)
    #expect(try places(of: canary).isEmpty)
    #expect(try places(of: Desk.passcode) == ["passcode"])
    try desk.done("get", "/\(canary)/\(canary)", "out/copy")
    #expect(try places(of: canary) == ["out/copy"])
  }

  /// The files below the folder that have `text` in their bytes or their names.
  private func places(of text: String) throws -> [String] {
    try (FileManager.default.enumerator(atPath: desk.root)?.allObjects as? [String] ?? []).filter { path in
      if path.contains(text) { return true }
      var isFolder: ObjCBool = false
      guard FileManager.default.fileExists(atPath: desk.path(path), isDirectory: &isFolder), !isFolder.boolValue else {
        return false
      }
      return Data(try desk.read(path)).range(of: Data(text.utf8)) != nil
    }.sorted()
  }
}
