import Foundation
import Glibc
import Testing

/// A mounted vault whose disk fails otherwise than by being full.
@Suite(
  .enabled(if: Fuse.isThere, "/dev/fuse is not there, or not ours to open"),
  .enabled(if: access("/usr/bin/prlimit", X_OK) == 0, "prlimit is not installed"))
final class FailingDiskTests {
  let desk: Desk

  init() throws {
    desk = try Desk()
    try desk.makeVault()
    try Kernel.mkdir(desk.path("mnt"))
  }

  deinit {
    _ = try? desk.run("coffer", ["unmount", "--force", desk.path("mnt")])
    _ = try? desk.run("coffer", ["agent", "stop", "--force"])
  }

  /// Whether the agent may write to files at all.
  private func letWrite(_ mayWrite: Bool) throws {
    let limit = "--fsize=\(mayWrite ? "unlimited" : "0"):unlimited"
    let agent = try desk.agentProcess()
    try #require(desk.run("/usr/bin/prlimit", ["--pid", "\(agent)", limit]).code == 0)
  }

  @Test func `an agent that can store nothing any more says so, and ends when it is told to`() throws {
    // A write past the limit fails then, and ends nothing.
    let agent = try desk.startShell("trap '' XFSZ; exec coffer agent run --idle-lock 0 --passcode-file passcode")
    try #require(agent.line() == "ready\n")
    try desk.served("mount", "mnt")
    try Kernel.makeFile(desk.path("mnt/before"), noise(100_000))
    try Handle(desk.path("mnt/before"), O_RDWR).sync()
    try letWrite(false)
    try Kernel.mkdir(desk.path("mnt/folder"))
    #expect(throws: CallError.self) { try Handle(desk.path("mnt"), O_RDONLY).sync() }
    try letWrite(true)
    #expect(throws: CallError.self) { try Kernel.mkdir(desk.path("mnt/other")) }
    let refused = try desk.run("coffer", ["agent", "stop"])
    #expect(refused.code == 74 && refused.errors.contains("cannot be stored any more"), "\(refused.errors)")
    #expect(try Kernel.content(desk.path("mnt/before")) == noise(100_000))
    let ended = try desk.run("coffer", ["agent", "stop", "--force"])
    #expect(ended.code == 74 && ended.errors.contains("is lost"), "\(ended.errors)")
    #expect(agent.wait().code == 74)
    #expect(try desk.done("verify", "--deep").output.contains("damaged    nothing"))
    #expect(try desk.done("ls").output == "before\n")
    #expect(try desk.done("cat", "/before").bytes == noise(100_000))
  }
}
