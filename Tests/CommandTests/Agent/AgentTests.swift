import CofferSystem
import CofferTestSupport
import Foundation
import Glibc
import Testing

@testable import coffer

/// One process holds the open vault, and every command goes through it.
@Suite final class AgentTests {
  let desk: Desk

  init() throws {
    desk = try Desk()
    try desk.makeVault()
    try desk.done("put", "-", "/kept", input: noise(200_000))
  }

  deinit { _ = try? desk.run("coffer", ["agent", "stop"]) }

  @Test func `after an unlock, commands ask for no passcode and do what they do without`() throws {
    #expect(
      try desk.unlock().output
        == "unlocked; locks after 15 minutes in which no command runs, and nothing is read or written in a mount\n")
    #expect(try desk.unlock().code == 0)
    try desk.write("a file", noise(50_000, seed: 2))
    // Relative paths lead from where the client is.
    try desk.served("put", "a file", "/")
    try desk.served("put", "-", "/stream", input: noise(3 << 20, seed: 3))
    try desk.served("mkdir", "-p", "/folder/inner")
    try desk.served("put", "-r", "out", "/folder")
    #expect(try desk.served("ls").output == "a file\nfolder/\nkept\nstream\n")
    #expect(try desk.served("cat", "/stream").bytes == noise(3 << 20, seed: 3))
    try desk.served("get", "/a file", "out/copy")
    #expect(try desk.read("out/copy") == noise(50_000, seed: 2))
    #expect(try desk.served("get", "/kept", "-").bytes == noise(200_000))
    try desk.served("mv", "/a file", "/folder/")
    try desk.served("rm", "-r", "/folder")
    #expect(try desk.served("verify", "--deep").output.contains("damaged    nothing"))
    #expect(try desk.served("backup", "copy").value == desk.path("copy"))
    let listed = try JSONSerialization.jsonObject(with: Data(try desk.served("ls", "--json").bytes))
    #expect((listed as? [[String: Any]])?.map { $0["name"] as? String } == ["kept", "stream"])

    // What goes wrong is told to the client, with its code.
    try desk.unserved(66, "no such file or folder in the vault", "cat", "/absent")
    try desk.unserved(66, "absent: no such file", "put", "absent", "/")
    try desk.unserved(73, "taken", "mkdir", "/kept")
    try desk.unserved(64, "use -r", "put", "out", "/")
    try desk.unserved(64, "Usage:", "put", "only")
    try desk.unserved(66, "no such folder", "get", "/kept", "absent/")
    #expect(try desk.served("ls", "--help").output.contains("USAGE: coffer ls"))

    // Without an agent a command opens the vault by itself, which the agent has until it is stopped.
    let before = try desk.agentProcess()
    expect(
      try desk.run("coffer", ["accept-restored", "--yes", "--passcode-file", "passcode"]), code: 75,
      says: ["coffer agent stop"])
    #expect(try desk.agentProcess() == before)
    #expect(try desk.served("agent", "stop").output == "the agent has ended\n")
    try desk.unserved(64, "--passcode-file", "ls")
    #expect(try desk.done("ls").output == "kept\nstream\n")
    #expect(try desk.served("agent", "stop").output == "no agent holds this vault\n")
    for command in ["status", "stop"] {
      let asked = try desk.served("agent", command, "--vault", "elsewhere").output
      #expect(asked.hasPrefix("no vault is found at this place"), "\(asked)")
    }
    for json in [[], ["--json"]] {
      let locked = try desk.run("coffer", ["lock", "--vault", "elsewhere"] + json)
      expect(locked, code: 66, says: ["no vault is found at this place"])
    }
    #expect(try desk.served("lock").output.contains("nothing is unlocked"))
    #expect(try desk.served("agent", "status").output.contains("no agent"))
    #expect(!desk.listing("run").contains { $0.contains(".sock") })
  }

  @Test func `the agent says what it holds and how it is kept`() throws {
    try desk.unlock("--idle-lock", "7.5", "--grace", "3")
    let status = try #require(try desk.agentStatus())
    let process = try #require(status["process"] as? Int)
    #expect(status["state"] as? String == "unlocked" && status["commands"] as? Int == 0)
    #expect(status["idleLockMinutes"] as? Double == 7.5 && status["graceSeconds"] as? Double == 3)
    #expect(status["coreDumpsOff"] as? Bool == true && status["readOnly"] as? Bool == false)
    let information = try JSONSerialization.jsonObject(with: Data(try desk.served("info", "--json").bytes))
    #expect(status["vaultID"] as? String == (information as? [String: Any])?["vaultID"] as? String)
    let text = try desk.served("agent", "status").output
    #expect(text.contains("process    \(process)\n") && text.contains("no core dumps"))

    // It has none of its client's descriptors, session or folder, and shows no passcode.
    let links = try FileManager.default.contentsOfDirectory(atPath: "/proc/\(process)/fd").compactMap {
      try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/\(process)/fd/\($0)")
    }
    #expect(
      links.filter { $0.contains(desk.path("logs")) || $0.hasPrefix("pipe:") }.count == 4, "its own two pipes only")
    #expect(try FileManager.default.destinationOfSymbolicLink(atPath: "/proc/\(process)/cwd") == "/")
    #expect(getsid(pid_t(process)) == pid_t(process))
    for file in ["cmdline", "environ"] {
      let bytes = try KernelFile.bytes(of: "/proc/\(process)/\(file)")
      #expect(!bytes.contains(Array(Desk.passcode.utf8)) && !bytes.isEmpty)
    }
    let limits = try KernelFile.text(of: "/proc/\(process)/status")
    let locked = try #require(limits.split(separator: "\n").first { $0.hasPrefix("VmLck:") })
    let kibibytes = Int(locked.split(whereSeparator: \.isWhitespace)[1]) ?? 0
    #expect((status["memoryLocked"] as? Bool == true) == (kibibytes > 10_000))
  }

  @Test func `a failure to start is told as the command's own`() throws {
    try desk.write("wrong", "no passcode\n")
    let outcome = try desk.run("coffer", ["unlock", "--passcode-file", "wrong"])
    expect(outcome, code: 77, says: ["the passcode is wrong"])
    expect(try desk.run("coffer", ["unlock"]), code: 64, says: ["no terminal"])
    let holder = try desk.start("coffer", ["put", "-", "/x", "--passcode-file", "passcode"])
    #expect(holder.send(noise(1 << 20)))
    expect(try desk.run("coffer", ["unlock", "--passcode-file", "passcode"]), code: 75, says: ["in use"])
    holder.signal(SIGINT)
    _ = holder.wait()
    for wrong in [["--idle-lock", "-1"], ["--grace", "nan"], ["--idle-lock", "soon"]] {
      expect(try desk.run("coffer", ["unlock"] + wrong), code: 64, says: ["Usage:"])
    }
    desk.environment["COFFER_VAULT"] = desk.path("out")
    expect(try desk.run("coffer", ["unlock", "--passcode-file", "passcode"]), code: 66, says: ["not a vault"])
    desk.environment["COFFER_VAULT"] = desk.path("vault")
    #expect(try desk.agentStatus() == nil)
    try desk.unlock()
  }

  @Test func `the passcode changes while the agent holds the vault, and it unlocks with the new one`() throws {
    try desk.write("new", "staple battery horse\n")
    try desk.unlock()
    let process = try desk.agentProcess()
    try desk.unserved(64, "--passcode-file", "passcode")
    try desk.unserved(
      77, "the passcode is wrong", "passcode", "--passcode-file", "new", "--new-passcode-file", "new")
    #expect(
      try desk.served(
        "passcode", "--passcode-file", "passcode", "--new-passcode-file", "new", "--new-recovery-key-file", "recovery"
      )
      .errors.contains("the passcode is changed"))
    #expect(try desk.served("ls").output == "kept\n")
    try desk.served("lock", "--now")
    try desk.unserved(77, "the passcode is wrong", "unlock", "--passcode-file", "passcode")
    try desk.served("unlock", "--passcode-file", "new")
    #expect(try desk.agentProcess() == process)
    #expect(try desk.served("get", "/kept", "-").bytes == noise(200_000))

    // Whoever forgot the passcode of a locked agent's vault gets in with the recovery key.
    try desk.served("lock", "--now")
    let recovered = try desk.served("recover", "--recovery-key-file", "recovery", "--new-passcode-file", "passcode")
    #expect(recovered.errors.contains("agent") && recovered.errors.contains("ended"))
    #expect(try desk.agentStatus() == nil)
    #expect(try desk.done("ls").output == "kept\n")
  }

  @Test func `a running agent keeps its settings, and says so to whoever asks for others`() throws {
    #expect(try !desk.unlock("--idle-lock", "20").errors.contains("settings"))
    #expect(try !desk.unlock("--idle-lock", "20").errors.contains("settings"))
    #expect(try !desk.unlock().errors.contains("settings"))
    #expect(try desk.unlock("--grace", "3").errors.contains("keeps its settings: it locks after 20 minutes, with 10"))
    #expect(try desk.agentStatus()?["graceSeconds"] as? Double == 10)
  }

  @Test func `a wipe ends the agent, too, and leaves nothing`() throws {
    try desk.unlock()
    let outcome = try desk.run("coffer", ["wipe", "--yes"])
    #expect(outcome.code == 0)
    #expect(outcome.output.contains("wiped"))
    #expect(!desk.exists("vault/keybag.json") && !desk.exists("vault/index.sqlite"))
    #expect(try FileManager.default.contentsOfDirectory(atPath: desk.path("keys")).isEmpty)
  }

  @Test func `two that unlock at the same moment find one agent`() throws {
    for _ in 0..<3 {
      let both = try (0..<2).map { _ in try desk.start("coffer", ["unlock", "--passcode-file", "passcode", "--json"]) }
      let outcomes = both.map { $0.wait() }
      #expect(outcomes.map(\.code) == [0, 0], "\(outcomes.map(\.errors))")
      let processes = try outcomes.map { outcome in
        try (JSONSerialization.jsonObject(with: Data(outcome.bytes)) as? [String: Any])?["process"] as? Int
      }
      #expect(processes[0] == processes[1] && processes[0] != nil)
      try desk.served("agent", "stop")
    }
  }

  @Test func `a vault is its folder: a copy elsewhere is not served from it`() throws {
    try desk.copy("vault", to: "copy")
    try desk.unlock()
    try desk.served("put", "-", "/new", input: [1])
    try desk.unserved(64, "--passcode-file", "ls", "--vault", "copy")
    #expect(try desk.done("ls", "--vault", "copy").output == "kept\n")
    let copy = try desk.run("coffer", ["unlock", "--vault", "copy", "--passcode-file", "passcode"])
    expect(copy, code: 75, says: ["a copy of it"])
    #expect(try desk.served("agent", "stop", "--vault", "copy").output == "no agent holds this vault\n")
    // By whatever name it is reached.
    try FileManager.default.createSymbolicLink(atPath: desk.path("link"), withDestinationPath: "vault")
    #expect(try desk.served("ls", "--vault", "link").output == "kept\nnew\n")
    #expect(try desk.served("ls", "--vault", "out/../vault/.").output == "kept\nnew\n")
  }

  @Test func `without a runtime folder of the system the agent is found beside the key stores`() throws {
    desk.environment["XDG_RUNTIME_DIR"] = nil
    try desk.unlock()
    #expect(try desk.served("ls").output == "kept\n")
    #expect(desk.listing("home/.local/state/coffer/run").contains { $0.contains(".sock") })
    try desk.served("agent", "stop")
  }

  @Test func `a current folder that cannot be read is one to come from all the same`() throws {
    try FileManager.default.createDirectory(
      atPath: desk.path("closed"), withIntermediateDirectories: false, attributes: [.posixPermissions: 0o700])
    try desk.write("closed/file", [1, 2, 3])
    try desk.unlock()
    chmod(desk.path("closed"), 0o300)
    // The superuser reads everything, unless it gives that up.
    let plain = geteuid() == 0 ? "setpriv --bounding-set=-all --inh-caps=-all" : ""
    let outcome = try desk.shell(
      "cd closed && ! \(plain) ls && \(plain) coffer put file / && \(plain) coffer get /kept .")
    #expect(outcome.code == 0, "\(outcome.errors)")
    // One that is not theirs to pass, as where somebody became another user in a folder of their own.
    chmod(desk.path("closed"), 0o600)
    let refused = try desk.shell("cd closed && exec \(plain) coffer ls /")
    #expect(refused.code == 77 && refused.errors.contains("go to another one (cd)"), "\(refused.errors)")
    chmod(desk.path("closed"), 0o700)
    #expect(try desk.served("cat", "/file").bytes == [1, 2, 3])
    #expect(try desk.read("closed/kept") == noise(200_000))
  }

  @Test func `a passcode on standard input is no part of what is stored`() throws {
    try desk.unlock()
    let input = Array("\(Desk.passcode)\n".utf8) + noise(70_000, seed: 4)
    try desk.served("put", "-", "/rest", "--passcode-file", "-", input: input)
    #expect(try desk.served("cat", "/rest").bytes == noise(70_000, seed: 4))
  }

  @Test func `an agent that was killed leaves nothing to clean`() throws {
    let before = desk.objects()
    try desk.unlock()
    let put = try desk.start("coffer", ["put", "-", "/lost"])
    #expect(put.send(noise(8 << 20)))
    kill(try desk.agentProcess(), SIGKILL)
    let outcome = put.wait(leavingInputOpen: true)
    expect(outcome, code: 75, says: ["the agent ended before the command did"])
    #expect(try desk.agentStatus() == nil)
    #expect(try desk.done("ls").output == "kept\n")
    #expect(desk.objects() == before)
    // The socket is still there, and is replaced.
    #expect(try desk.socketPath.hasSuffix(".sock"))
    try desk.unlock()
    #expect(try desk.served("cat", "/kept").bytes == noise(200_000))
  }

  @Test func `SIGTERM ends it after what was done is stored, also while a put is waiting`() throws {
    let before = desk.objects()
    for signal in [SIGTERM, SIGINT] {
      try desk.unlock()
      let process = try desk.agentProcess()
      let put = try desk.start("coffer", ["put", "-", "/lost"])
      #expect(put.send(noise(8 << 20)))
      // Waits for a lock, and so until the process has ended; asked before the next one, it is heard before.
      let watcher = try RawClient(desk.socketPath)
      let request = AgentRequest(.status(untilLocked: true), of: try FolderIdentity(at: desk.path("vault")))
      #expect(watcher.send(request.message.withUnsafeBytes { Array($0) }))
      #expect(try desk.agentState == "unlocked")
      kill(process, signal)
      #expect(put.wait(leavingInputOpen: true).code == 130)
      #expect(watcher.answer().isEmpty)
      #expect(try desk.done("ls").output == "kept\n")
      #expect(desk.objects() == before)
      #expect(!desk.listing("run").contains { $0.contains(".sock") })
    }
  }

  @Test func `so many wait for the lock, and keep nobody from locking`() throws {
    try desk.unlock()
    let request = AgentRequest(.status(untilLocked: true), of: try FolderIdentity(at: desk.path("vault")))
    var watchers: [RawClient] = []
    for _ in 0..<32 {
      let watcher = try RawClient(desk.socketPath)
      #expect(watcher.send(request.message.withUnsafeBytes { Array($0) }))
      watchers.append(watcher)
    }
    // Asked behind them, it is heard behind them.
    #expect(try desk.agentState == "unlocked")
    let late = try desk.run("coffer", ["agent", "status", "--until-locked"])
    #expect(late.code == 75 && late.errors.contains("too many programs wait for the lock"), "\(late)")
    try desk.served("lock", "--now")
    for watcher in watchers { #expect(String(decoding: watcher.answer(), as: UTF8.self).contains("locked")) }
  }

  @Test func `an agent in the foreground says when it is found`() throws {
    let agent = try desk.start(
      "coffer", ["agent", "run", "--vault", "vault", "--key-store", "keys", "--passcode-file", "passcode"])
    #expect(agent.line() == "ready\n")
    // From another folder: what the agent was given as relative paths stays where it was.
    let outcome = try desk.run("/bin/sh", ["-c", "cd out && '\(coffer)' put - /new"], input: [1, 2, 3])
    #expect(outcome.code == 0, "\(outcome.errors)")
    expect(
      try desk.run("coffer", ["unlock", "--foreground", "--passcode-file", "passcode"]), code: 75, says: ["already"])
    agent.signal(SIGTERM)
    #expect(agent.wait().code == 0)
    #expect(try desk.done("cat", "/new").bytes == [1, 2, 3])
    #expect(desk.listing("out").isEmpty)
  }

  private var coffer: String { RunningProgram.folder.appendingPathComponent("coffer").path }

  @Test func `a company's commands go through it as well`() async throws {
    let server = try RunningServer(at: desk)
    // However long other tests keep this one waiting.
    try desk.unlock("--idle-lock", "0")
    #expect(try desk.served("enroll", server.url, server.enrollmentCode()).output.hasPrefix("company    "))
    try desk.unserved(77, "saveCopy", "get", "/kept", "out")
    try await server.allowOwner(["import", "view", "edit", "saveCopy"])
    try desk.served("policy", "refresh")
    try desk.served("get", "/kept", "out")
    #expect(try desk.served("policy").output.contains("saveCopy"))
    let team = try Team("acme", at: desk)
    try desk.served("app", "install", try team.sign("editor", bundleId: "com.acme.editor", teamId: "ACME"))
    #expect(try desk.served("app", "list").output.hasPrefix("com.acme.editor  "))
    #expect(desk.exists("containers"))
    #expect(server.stop().code == 0)
  }
}
