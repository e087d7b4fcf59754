import Foundation
import Glibc
import Testing

/// A person who changes their mind at a hidden prompt: whatever ends or stops the program, the terminal shows again what
/// is typed, at once.
@Suite final class PromptTests {
  let desk: Desk

  init() throws {
    desk = try Desk()
    try desk.makeVault(withRecoveryKey: false)
  }

  deinit { _ = try? desk.run("coffer", ["agent", "stop"]) }

  private static let (interrupt, stop): (UInt8, UInt8) = (3, 26)

  /// Whether the terminal showed what is typed when `stty -a` was asked last in `text`.
  private func hasEcho(_ text: some StringProtocol) -> Bool {
    let words = text.split { $0.isWhitespace }
    return words.contains("echo") && !words.contains("-echo")
  }

  @Test func `Control-C ends a prompt at once, and the script with it`() throws {
    // One that goes on after its program, and so can look.
    let looking = try desk.startOnTerminal("trap : INT; coffer ls; echo \"code=$?\"; stty -a")
    _ = looking.read(until: "Passcode: ")
    looking.send([Self.interrupt])
    let looked = looking.wait(leavingInputOpen: true).output
    #expect(looked.contains("coffer: interrupted; nothing was changed"))
    #expect(looked.contains("code=130") && hasEcho(looked), "\(looked)")

    // One that does not: a shell ends its script where the program ended by the signal itself.
    for command in ["ls", "passcode --passcode-file passcode --new-recovery-key-file new.key"] {
      let script = try desk.startOnTerminal("coffer \(command); echo went on")
      _ = script.read(until: "asscode: ")
      script.send([Self.interrupt])
      let outcome = script.wait(leavingInputOpen: true)
      #expect(outcome.code == 130 && !outcome.output.contains("went on"), "\(outcome.output)")
    }
    // Nothing opens it.
    #expect(!desk.exists("new.key"))
    // A pipe that never ends, from one process: a group of commands that is interrupted between two of them ends with 1,
    // and its shell goes on whatever else the signal ended.
    try desk.write("begun", [UInt8](repeating: 0, count: 8_000_000))
    let put = try desk.startOnTerminal(
      "tail -c +1 -f begun | coffer put - /new --passcode-file passcode; echo went on \"${PIPESTATUS[*]}\"")
    while desk.objects().isEmpty { sched_yield() }
    put.send([Self.interrupt])
    let outcome = put.wait(leavingInputOpen: true)
    #expect(outcome.code == 130 && !outcome.output.contains("went on"), "\(outcome.output)")
    #expect(outcome.output.contains("nothing was left half done"))
    #expect(try desk.done("ls").output.isEmpty)
  }

  @Test(arguments: [SIGTERM, SIGHUP])
  func `a signal that ends a prompt leaves the echo behind`(signal: Int32) throws {
    let script = try desk.startOnTerminal("coffer ls & echo $! > process; wait $!; echo \"code=$?\"; stty -a")
    _ = script.read(until: "Passcode: ")
    kill(try process(), signal)
    let output = script.wait(leavingInputOpen: true).output
    #expect(output.contains("code=\(128 + signal)") && hasEcho(output), "\(output)")
  }

  /// The one whose number a script has written.
  private func process() throws -> pid_t {
    while true {
      let text = (try? desk.read("process")).map { String(decoding: $0, as: UTF8.self) } ?? ""
      if text.hasSuffix("\n"), let number = pid_t(text.dropLast()) { return number }
      sched_yield()
    }
  }

  @Test func `Control-Z gives the echo back, and a program that goes on asks again`() throws {
    let script = try desk.startOnTerminal(
      "set -m; coffer ls; echo \"stopped=$?\"; stty -a; fg; echo \"code=$?\"; stty -a")
    _ = script.read(until: "Passcode: ")
    script.send([Self.stop])
    let stopped = script.read(until: "Passcode: ")
    #expect(stopped.contains("stopped=148") && hasEcho(stopped), "\(stopped)")
    script.send(Array((Desk.passcode + "\n").utf8))
    let output = script.wait().output
    #expect(output.contains("code=0") && hasEcho(output) && !output.contains(Desk.passcode), "\(output)")
  }

  @Test func `a prompt of the agent's ends so as well`() throws {
    try desk.unlock()
    let interrupted = try desk.startOnTerminal("trap : INT; coffer passcode; echo \"code=$?\"; stty -a")
    _ = interrupted.read(until: "Present passcode: ")
    interrupted.send([Self.interrupt])
    let killed = try desk.startOnTerminal("coffer passcode & echo $! > process; wait $!; echo \"code=$?\"; stty -a")
    _ = killed.read(until: "Present passcode: ")
    kill(try process(), SIGTERM)
    for (script, signal) in [(interrupted, SIGINT), (killed, SIGTERM)] {
      let output = script.wait(leavingInputOpen: true).output
      #expect(output.contains("coffer: interrupted; nothing was changed"), "\(output)")
      #expect(output.contains("code=\(128 + signal)") && hasEcho(output), "\(output)")
    }
    #expect(try desk.served("ls").output.isEmpty)
  }
}
