import Foundation
import Glibc
import Testing

/// An agent that was started with another environment, and vaults that something else has open.
@Suite final class AgentElsewhereTests {
  let desk: Desk

  init() throws {
    desk = try Desk()
    try desk.makeVault()
    try desk.done("put", "-", "/kept", input: noise(5000))
  }

  deinit {
    desk.environment["XDG_RUNTIME_DIR"] = desk.path("run")
    _ = try? desk.run("coffer", ["agent", "stop"])
  }

  @Test func `an agent beside the key stores is found also where there is a runtime folder`() throws {
    desk.environment["XDG_RUNTIME_DIR"] = nil
    try desk.unlock()
    desk.environment["XDG_RUNTIME_DIR"] = desk.path("run")
    #expect(try desk.served("ls").output == "kept\n")
    #expect(try desk.unlock().output.contains("unlocked"))
    try desk.served("lock", "--now")
    #expect(try desk.agentState == "locked")
    #expect(try desk.served("agent", "stop").output == "the agent has ended\n")
    #expect(try desk.agentStatus() == nil)
  }

  @Test(.enabled(if: Person.canBeAnother, "only root may give a folder away"))
  func `another user's runtime folder, which su(1) leaves in the environment, is left alone`() throws {
    #expect(chown(desk.path("run"), 65_534, 65_534) == 0)
    defer { chown(desk.path("run"), geteuid(), getegid()) }
    let before = desk.listing("run")
    // Also by a link of one's own.
    try FileManager.default.createSymbolicLink(atPath: desk.path("link"), withDestinationPath: desk.path("run"))
    for name in ["run", "link"] {
      desk.environment["XDG_RUNTIME_DIR"] = desk.path(name)
      try desk.unlock()
      #expect(try desk.served("ls").output == "kept\n")
      #expect(desk.listing("run") == before)
      try desk.served("agent", "stop")
    }
  }

  @Test(.enabled(if: Person.canBeAnother, "only root may give a folder away"))
  func `a folder of agents that others may enter is named`() throws {
    let folder = desk.path("run/coffer")
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: false)
    #expect(chmod(folder, 0o755) == 0)
    defer { chmod(folder, 0o700) }
    try desk.unserved(
      77, "the folder of agents, \(folder), is not yours alone", "unlock", "--passcode-file", "passcode")
  }

  /// Whether something comes about that the agent does beside what it is asked: looked for as often as many commands run.
  private func comesAbout(_ condition: () throws -> Bool) throws -> Bool {
    for _ in 0..<2000 {
      if try condition() { return true }
      _ = try desk.coffer("--version")
    }
    return false
  }

  /// Has the agent look after its socket, and returns when it is found.
  private func lookAfter(_ process: pid_t) throws {
    kill(process, SIGUSR1)
    #expect(try comesAbout { try desk.coffer("agent", "status", "--json").code == 0 })
    #expect(try desk.agentProcess() == process)
  }

  @Test func `an agent whose runtime folder went with the session is found in the next one`() throws {
    #expect(try desk.run("/bin/mkdir", ["-p", "home/.local/state"]).code == 0)
    try desk.unlock()
    let process = try desk.agentProcess()
    try desk.remove("run")
    try lookAfter(process)
    #expect(!desk.exists("run"))
    try FileManager.default.createDirectory(
      atPath: desk.path("run"), withIntermediateDirectories: false, attributes: [.posixPermissions: 0o700])
    #expect(try desk.served("ls").output == "kept\n")
    try desk.served("lock", "--now")
    try desk.unlock()
    #expect(try desk.agentProcess() == process)
    // And goes back, so that no other one is started there.
    kill(process, SIGUSR1)
    let former = "home/.local/state/coffer/run"
    #expect(try comesAbout { desk.exists("run/coffer") && !desk.listing(former).contains { $0.contains(".sock ") } })
    #expect(try desk.agentProcess() == process)
    try desk.served("agent", "stop")
    #expect(try desk.agentStatus() == nil)
    #expect(!desk.listing("run/coffer").contains { $0.contains(".sock ") })
  }

  /// As what clears old files away does.
  @Test(arguments: [[".sock"], [".lock"], [".sock", ".lock"]])
  func `an agent whose socket or name was removed makes it anew`(suffixes: [String]) throws {
    try desk.unlock()
    let process = try desk.agentProcess()
    let folder = desk.path("run/coffer/")
    let names = try FileManager.default.contentsOfDirectory(atPath: folder)
    let lost = try suffixes.map { suffix in folder + (try #require(names.first { $0.hasSuffix(suffix) })) }
    for path in lost { try FileManager.default.removeItem(atPath: path) }
    kill(process, SIGUSR1)
    #expect(try comesAbout { lost.allSatisfy(FileManager.default.fileExists) })
    try lookAfter(process)
    try desk.unlock()
    #expect(try desk.agentProcess() == process)
    try desk.served("agent", "stop")
    #expect(try desk.agentStatus() == nil)
  }

  @Test func `an agent makes no state folder, and waits for the runtime folder where there is none`() throws {
    try desk.unlock()
    let process = try desk.agentProcess()
    try desk.remove("run")
    kill(process, SIGUSR1)
    expect(try desk.coffer("agent", "status"), code: 75, says: ["process \(process)"])
    try FileManager.default.createDirectory(
      atPath: desk.path("run"), withIntermediateDirectories: false, attributes: [.posixPermissions: 0o700])
    try lookAfter(process)
    #expect(!desk.exists("home/.local/state"))
    try desk.served("agent", "stop")
  }

  /// With a home of its own in a name space of mounts, where nothing is left of it.
  @Test(.enabled(if: Person.canBeAnother, "only root may give a folder away"))
  func `another user's home, which sudo(8) may leave in the environment, is left alone`() throws {
    for name in ["theirs", "linked", "elsewhere", "dangling"] { try Kernel.mkdir(desk.path(name)) }
    try FileManager.default.createSymbolicLink(
      atPath: desk.path("linked/.local"), withDestinationPath: desk.path("elsewhere"))
    // To nothing: they could make it at any moment.
    try FileManager.default.createSymbolicLink(
      atPath: desk.path("dangling/.local"), withDestinationPath: desk.path("absent"))
    // The system's link to a folder of theirs.
    try FileManager.default.createSymbolicLink(atPath: desk.path("to-theirs"), withDestinationPath: desk.path("theirs"))
    for name in ["theirs", "linked", "linked/.local", "dangling/.local"] {
      #expect(lchown(desk.path(name), 65_534, 65_534) == 0)
    }
    let outcome = try desk.run(
      "/usr/bin/unshare",
      [
        "--mount", "/bin/sh", "-c",
        """
        own=$(python3 -c 'import os, pwd; print(pwd.getpwuid(os.geteuid()).pw_dir)')
        mount -t tmpfs none "$own" && unset XDG_STATE_HOME XDG_RUNTIME_DIR || exit 70
        for name in theirs linked dangling to-theirs; do
          HOME="$PWD/$name" "$0" unlock --passcode-file passcode > said 2>&1 || { cat said; exit 71; }
          HOME="$PWD/$name" "$0" ls && HOME="$PWD/$name" "$0" agent stop
        done
        find theirs elsewhere; test -e absent && echo absent; ls "$own/.local/state/coffer"
        """, RunningProgram.folder.appending(path: "coffer").path,
      ])
    #expect(
      outcome.output
        == String(repeating: "kept\nthe agent has ended\n", count: 4) + "theirs\nelsewhere\nrun\n",
      "\(outcome.errors)")
  }

  static let runtimeFolder = "/run/user/\(geteuid())"

  @Test(.enabled(if: access(runtimeFolder, W_OK) == 0, "needs a runtime folder of the system's"))
  func `an agent in the system's runtime folder is found without the variable`() throws {
    desk.environment["XDG_RUNTIME_DIR"] = Self.runtimeFolder
    try desk.unlock()
    desk.environment["XDG_RUNTIME_DIR"] = nil
    try desk.served("lock", "--now")
    #expect(try desk.agentState == "locked")
    try desk.served("agent", "stop")
  }

  @Test func `an agent that cannot be found is not taken for none`() throws {
    try desk.unlock()
    let process = try desk.agentProcess()
    desk.environment["XDG_RUNTIME_DIR"] = nil
    try expectHolder(process)
    desk.environment["XDG_RUNTIME_DIR"] = desk.path("run")
    #expect(try desk.agentState == "unlocked")
    try desk.served("agent", "stop")
    #expect(try desk.served("lock", "--now").output.contains("nothing is unlocked"))
  }

  @Test func `nor is a command that has the vault open`() throws {
    let put = try desk.start("coffer", ["put", "-", "/new", "--passcode-file", "passcode"])
    #expect(put.send(noise(8 << 20)))
    try expectHolder(put.processID)
    #expect(put.wait().code == 0)
    #expect(try desk.agentStatus() == nil)
  }

  private func expectHolder(_ process: pid_t, sourceLocation: SourceLocation = #_sourceLocation) throws {
    for arguments in [
      ["lock"], ["lock", "--now"], ["lock", "--json"], ["agent", "stop"], ["agent", "status"],
      ["agent", "status", "--json"],
    ] {
      try expect(
        desk.run("coffer", arguments), code: 75, says: ["process \(process)"], sourceLocation: sourceLocation)
    }
  }
}
