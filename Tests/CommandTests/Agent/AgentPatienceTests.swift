import Foundation
import Glibc
import Testing

@testable import coffer

/// Clients that read and write nothing: the agent waits for none of them longer than for its own word.
@Suite(.timeLimit(.minutes(2))) final class AgentPatienceTests {
  let desk: Desk
  static let content = noise(2 << 20, seed: 5)

  init() throws {
    desk = try Desk()
    try desk.makeVault()
    try desk.done("put", "-", "/big", input: Self.content)
  }

  deinit { _ = try? desk.run("coffer", ["agent", "stop"]) }

  @Test func `a client that was killed while nobody read its output keeps nothing open`() throws {
    try desk.unlock("--idle-lock", "0.01", "--grace", "0")
    for arguments in [["cat", "/big"], ["get", "/big", "-"], ["get", "/big", "/dev/fd/1"]] {
      // Again where it was locked before the command came to its file.
      var client: RunningProgram
      repeat {
        try desk.unlock()
        client = try desk.start("coffer", arguments)
      } while client.byte() != Self.content[0]
      client.signal(SIGKILL)
      // The other end of its output stays open here, and is not read.
      #expect(try desk.agentStatus("--until-locked")?["state"] as? String == "locked")
      try desk.waitForIdleAgent()
      withExtendedLifetime(client) {}
    }
  }

  @Test func `one that waits for its passcode, or for a fifo's writer, neither`() throws {
    try desk.unlock("--idle-lock", "0")
    #expect(mkfifo(desk.path("fifo"), 0o600) == 0)
    for arguments in [
      ["ls", "--passcode-file", "-"], ["passcode", "--passcode-file", "fifo"], ["put", "fifo", "/new"],
      ["import", "--rncryptor", "--rncryptor-key-file", "fifo", "-", "/new"],
    ] {
      let client = try desk.start("coffer", arguments)
      while try desk.agentStatus()?["commands"] as? Int == 0 { sched_yield() }
      client.signal(SIGKILL)
      try desk.waitForIdleAgent()
    }
    #expect(try desk.served("ls").output == "big\n")
  }

  @Test(arguments: [["ls"], ["agent", "status"], ["lock"], ["agent", "stop"]])
  func `an agent that does not answer is named, and waited for`(_ arguments: [String]) throws {
    try desk.unlock("--idle-lock", "0")
    let process = try desk.agentProcess()
    kill(process, SIGSTOP)
    defer { kill(process, SIGCONT) }
    let client = try desk.start("/bin/sh", ["-c", "exec \"$0\" \"$@\" 2>&1", program] + arguments)
    #expect(client.line().hasPrefix("coffer: the agent (process \(process)) has not answered for 5 seconds"))
    kill(process, SIGCONT)
    #expect(client.wait().code == 0)
  }

  @Test func `an agent that was told to end and does not is named, and waited for`() throws {
    try desk.unlock("--idle-lock", "0")
    let process = try desk.agentProcess()
    kill(process, SIGSTOP)
    defer { kill(process, SIGCONT) }
    // It asks nothing else first.
    let client = try desk.start("/bin/sh", ["-c", "exec \"$0\" wipe --yes 2>&1", program])
    #expect(client.line().hasPrefix("coffer: the agent (process \(process)) has not ended after 5 seconds"))
    kill(process, SIGCONT)
    let outcome = client.wait()
    #expect(outcome.code == 0 && outcome.output.contains("wiped"), "\(outcome.output)")
  }

  @Test func `who waits until it is locked waits in silence`() throws {
    try desk.unlock("--idle-lock", "0")
    let client = try desk.start("coffer", ["agent", "status", "--until-locked"])
    // Longer than others wait for an agent that does not answer.
    let other = try desk.start("coffer", ["ls"])
    let process = try desk.agentProcess()
    #expect(other.wait().code == 0)
    kill(process, SIGSTOP)
    let stopped = try desk.start("/bin/sh", ["-c", "exec \"$0\" ls 2>&1", program])
    #expect(stopped.line().contains("has not answered"))
    kill(process, SIGCONT)
    #expect(stopped.wait().code == 0)
    try desk.served("lock", "--now")
    let outcome = client.wait()
    #expect(outcome.code == 0 && outcome.errors == "", "\(outcome.errors)")
  }

  private var program: String { RunningProgram.folder.appending(path: "coffer").path }

  @Test func `what is typed after an interrupt is for the next program`() throws {
    try desk.unlock("--idle-lock", "0")
    let coffer = RunningProgram.folder.appendingPathComponent("coffer").path
    let script = "trap : INT; stty -echo; '\(coffer)' ls --passcode-file -; echo ended; read line; echo \"<$line>\""
    let terminal = try desk.start(
      "/usr/bin/script", ["-qec", "/bin/bash -c '\(script.replacing("'", with: "'\\''"))'", "/dev/null"])
    while try desk.agentStatus()?["commands"] as? Int == 0 { sched_yield() }
    #expect(terminal.send([3]))
    while case let line = terminal.line(), !line.hasPrefix("ended") { if line.isEmpty { break } }
    #expect(terminal.send(Array("for the next\n".utf8)))
    #expect(terminal.line() == "<for the next>\r\n")
    terminal.endInput()
    _ = terminal.wait()
  }

  @Test func `however many commands there are, a lock and a stop get through`() throws {
    try desk.unlock("--idle-lock", "0", "--grace", "0")
    let count = AgentServer.commandLimit + 8
    let clients = try (0..<count).map { _ in try desk.start("coffer", ["cat", "/big"]) }
    while try desk.agentStatus()?["commands"] as? Int != AgentServer.commandLimit { sched_yield() }
    try desk.served("lock", "--now")
    #expect(try desk.agentState == "locked")
    try desk.unlock()
    // Those that wait get their turn when others have gone, killed or done.
    for client in clients.prefix(count / 2) { client.signal(SIGKILL) }
    for client in clients.suffix(count / 2).prefix(4) {
      let outcome = client.wait()
      // What was at work when the vault was locked has ended with that.
      #expect(outcome.bytes == Self.content || outcome.code == 77, "\(outcome.code) \(outcome.errors)")
    }
    #expect(try desk.served("cat", "/big").bytes == Self.content)
    #expect(try desk.served("agent", "stop").output == "the agent has ended\n")
    withExtendedLifetime(clients) {}
  }
}
