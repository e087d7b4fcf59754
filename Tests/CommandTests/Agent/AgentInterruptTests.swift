import CofferContainer
import CofferSystem
import Foundation
import Glibc
import Testing

/// A client that is interrupted or goes away takes its command with it, and nothing stays of a put.
@Suite final class AgentInterruptTests {
  let desk: Desk
  let before: [String]

  init() throws {
    desk = try Desk()
    try desk.makeVault()
    try desk.done("put", "-", "/kept", input: noise(200_000))
    before = desk.objects()
    try desk.unlock()
  }

  deinit { _ = try? desk.run("coffer", ["agent", "stop"]) }

  @Test(arguments: [SIGINT, SIGTERM, SIGHUP, SIGKILL])
  func `a put that is cut short leaves nothing`(signal: Int32) throws {
    let put = try desk.start("coffer", ["put", "-", "/lost"])
    #expect(put.send(noise(8 << 20)))
    put.signal(signal)
    let outcome = put.wait(leavingInputOpen: true)
    #expect(outcome.code == 128 + signal, "\(outcome.errors)")
    try expectOnlyKept()
  }

  @Test(arguments: [SIGINT, SIGTERM, SIGHUP, SIGKILL])
  func `an unlock that is cut short leaves no agent`(signal: Int32) throws {
    try desk.done("agent", "stop")
    // Whoever opens the vault waits here.
    let lock = try Handle(desk.path("keys/\(try #require(Container.statedID(at: desk.path("vault"))))/lock"), O_RDWR)
    try CallError.check(flock(lock.number, LOCK_EX))
    let unlock = try desk.start("coffer", ["unlock", "--passcode-file", "passcode"])
    let agent = try child(of: unlock.processID)
    unlock.signal(signal)
    // Nobody ends it then, and it has what the client had.
    if signal == SIGKILL { try CallError.check(flock(lock.number, LOCK_UN)) }
    let outcome = unlock.wait()
    #expect(outcome.code == 128 + signal, "\(outcome)")
    #expect(signal == SIGKILL || outcome.errors.contains("interrupted; the vault was not unlocked"), "\(outcome)")
    try CallError.check(flock(lock.number, LOCK_UN))
    // It ends by itself where nobody is left whom it could tell that it is there.
    while kill(agent, 0) == 0 { sched_yield() }
    #expect(try desk.agentState == nil)
    try desk.unlock()
  }

  /// The first program that a process starts, once it has.
  private func child(of process: Int32) throws -> Int32 {
    while true {
      for thread in try FileManager.default.contentsOfDirectory(atPath: "/proc/\(process)/task") {
        let text = (try? KernelFile.text(of: "/proc/\(process)/task/\(thread)/children")) ?? ""
        if let first = text.split(separator: " ").first.flatMap({ Int32($0) }) { return first }
      }
      sched_yield()
    }
  }

  @Test func `what a Control-C cut short is not taken for the whole`() throws {
    for signal in [SIGINT, SIGKILL] {
      let put = try desk.start("coffer", ["put", "-", "/cut"])
      #expect(put.send(noise(8 << 20)))
      // The program before it in the pipeline has gone by the time that this one comes to its signal.
      put.signal(SIGSTOP)
      put.signal(signal)
      put.endInput()
      put.signal(SIGCONT)
      #expect(put.wait().code == (signal == SIGKILL ? 128 + SIGKILL : 130))
      try expectOnlyKept()
    }
  }

  @Test func `a get that nobody reads ends as without an agent`() throws {
    try desk.served("put", "-", "/large", input: noise(4 << 20))
    let script = "'\(RunningProgram.folder.appendingPathComponent("coffer").path)' cat /large; echo $? >&2"
    let outcome = try desk.run("/bin/bash", ["-c", "( \(script) ) | head -c 1"])
    #expect(outcome.bytes.count == 1)
    #expect(outcome.errors == "\(128 + SIGPIPE)\n")

    // So much that it lasts longer than a signal takes, however busy the machine is.
    let size = 128 << 20
    let put = try desk.shell("head -c \(size) /dev/zero | coffer put - /larger")
    #expect(put.code == 0, "\(put.errors)")
    let get = try desk.start("coffer", ["cat", "/larger"])
    #expect(get.byte() == 0)
    get.signal(SIGINT)
    let interrupted = get.wait()
    #expect(interrupted.code == 130, "\(interrupted.errors)")
    #expect(interrupted.bytes.count < size)
    #expect(try desk.served("cat", "/large").bytes == noise(4 << 20))
  }

  @Test func `a command that takes nothing back is left at once`() throws {
    try FileManager.default.createDirectory(atPath: desk.path("many"), withIntermediateDirectories: false)
    // More names than a pipe holds.
    for number in 0..<400 { try desk.write("many/\(number)" + String(repeating: "x", count: 240), "") }
    try desk.served("put", "-r", "many", "/")
    let list = try desk.start("coffer", ["ls", "/many"])
    #expect(list.byte() != nil)
    list.signal(SIGINT)
    // Nobody reads, so that the listing cannot come to its end before the signal does.
    list.waitUnread()
    let outcome = list.wait()
    #expect(outcome.code == 128 + SIGINT)
    try desk.served("rm", "-r", "/many")
  }

  @Test func `a folder that was new goes with the put, and a hidden copy with the get`() throws {
    try FileManager.default.createDirectory(atPath: desk.path("tree/a"), withIntermediateDirectories: true)
    try desk.write("tree/a/large", [1])
    #expect(truncate(desk.path("tree/a/large"), 1 << 34) == 0)
    let put = try desk.start("coffer", ["put", "-r", "tree", "/"])
    while desk.objects() == before { sched_yield() }
    put.signal(SIGINT)
    #expect(put.wait().code == 130)
    try expectOnlyKept()

    #expect(truncate(desk.path("tree/a/large"), 1 << 28) == 0)
    try desk.served("put", "-r", "tree", "/")
    let get = try desk.start("coffer", ["get", "-r", "/tree", "out"])
    while desk.listing("out").count < 2 { sched_yield() }
    get.signal(SIGKILL)
    _ = get.wait()
    try desk.waitForIdleAgent()
    #expect(desk.listing("out").isEmpty)
  }

  private func expectOnlyKept(sourceLocation: SourceLocation = #_sourceLocation) throws {
    try desk.waitForIdleAgent()
    #expect(try desk.served("ls", "-R").output == "kept\n", sourceLocation: sourceLocation)
    #expect(try desk.served("cat", "/kept").bytes == noise(200_000), sourceLocation: sourceLocation)
    #expect(desk.objects() == before, sourceLocation: sourceLocation)
  }
}
