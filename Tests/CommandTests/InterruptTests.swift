import CofferContainer
import CofferSystem
import Foundation
import Glibc
import Testing

/// A put that does not come to its end leaves nothing: not the name, not a byte.
@Suite struct InterruptTests {
  let desk: Desk

  init() throws {
    desk = try Desk()
    try desk.makeVault()
    try desk.done("put", "-", "/kept", input: noise(200_000))
  }

  @Test(arguments: [SIGINT, SIGTERM, SIGHUP]) func `an init that a signal ends leaves nothing`(signal: Int32) throws {
    let keys = try FileManager.default.contentsOfDirectory(atPath: desk.path("keys"))
    let start = try desk.start(
      "coffer",
      ["init", "--vault", "above/new", "--passcode-file", "passcode", "--recovery-key-file", "recovery"])
    // From there to the vault it is about half a second of the processor's.
    while !desk.exists("recovery"), !start.hasEnded { sched_yield() }
    start.signal(signal)
    let outcome = start.wait()
    let keysLeft = try FileManager.default.contentsOfDirectory(atPath: desk.path("keys"))
    if outcome.output.isEmpty {
      #expect(outcome.code == 128 + signal, "\(outcome)")
      #expect(outcome.errors.contains("nothing was left half done"), "\(outcome)")
      #expect(!desk.exists("recovery") && !desk.exists("above") && keysLeft == keys)
    } else {
      // A machine that kept this test from running so long: it came too late, or behind the end.
      #expect([128 + signal, 0].contains(outcome.code), "\(outcome)")
      #expect(desk.exists("recovery") && desk.exists("above/new") && keysLeft.contains(outcome.value), "\(outcome)")
    }
  }

  /// While the agent waits for the new passcode, and while it looks at the old one.
  @Test(arguments: [true, false])
  func `an agent changes no passcode for who was interrupted before it was known`(waits: Bool) throws {
    try desk.unlock()
    defer { _ = try? desk.run("coffer", ["agent", "stop"]) }
    if waits { try CallError.check(mkfifo(desk.path("new"), 0o600)) } else { try desk.write("new", "another") }
    let lock = try Handle(desk.path("keys/\(try #require(Container.statedID(at: desk.path("vault"))))/lock"), O_RDWR)
    if !waits { try CallError.check(flock(lock.number, LOCK_EX)) }
    let change = try desk.start(
      "coffer",
      ["passcode", "--passcode-file", "passcode", "--new-passcode-file", "new", "--new-recovery-key-file", "recovery"])
    var answer: Handle?
    if waits {
      // It is opened there once the old one was right.
      answer = try Handle(desk.path("new"), O_WRONLY)
    } else {
      try waitForWaiter(at: lock)
    }
    change.signal(SIGINT)
    change.waitUnread()
    // Where nobody reads any more it is as good.
    _ = try? answer?.write("another\n")
    answer = nil
    try CallError.check(flock(lock.number, LOCK_UN))
    // What the client had for its output, the agent has until it is done.
    #expect(change.wait().code == 128 + SIGINT)
    // It waits for what is running.
    try desk.served("agent", "stop")
    #expect(try desk.done("ls").output == "kept\n")
    #expect(!desk.exists("recovery"))
  }

  private func waitForWaiter(at lock: Handle) throws {
    let inode = ":\(try lock.stat().number) "
    while try !KernelFile.text(of: "/proc/locks").split(separator: "\n").contains(where: {
      $0.contains("-> FLOCK") && $0.contains(inode)
    }) { sched_yield() }
  }

  @Test func `a put that a signal ends leaves nothing`() throws {
    for signal in [SIGINT, SIGTERM, SIGHUP, SIGKILL] {
      let before = desk.objects()
      let put = try desk.start("coffer", ["put", "-", "/interrupted", "--passcode-file", "passcode"])
      // More than a pipe and the program's buffers hold: when it is taken, some of it is sealed and written.
      #expect(put.send(noise(8 << 20)))
      #expect(desk.objects().count > before.count)
      put.signal(signal)
      // The source goes on; who writes to it learns that nobody reads any more.
      while put.send(noise(1 << 20)) {}
      let outcome = put.wait()
      #expect(outcome.code == 128 + signal, "\(outcome.errors)")
      #expect(signal == SIGKILL || outcome.errors.contains("nothing was left half done"))
      try expectOnlyKept(before)
    }
    // Nothing of what was interrupted is in the way.
    try desk.done("put", "-", "/interrupted", input: noise(100_000))
    #expect(try desk.done("ls").output == "interrupted\nkept\n")
  }

  @Test func `a file that is replaced stays as it was when the put is interrupted`() throws {
    for signal in [SIGINT, SIGKILL] {
      let put = try desk.start("coffer", ["put", "-", "/kept", "--passcode-file", "passcode"])
      #expect(put.send(noise(8 << 20, seed: 3)))
      put.signal(signal)
      while put.send(noise(1 << 20)) {}
      #expect(put.wait().code != 0)
      #expect(try desk.done("cat", "/kept").bytes == noise(200_000))
    }
  }

  @Test func `a put that waits for its source ends with the signal`() throws {
    let before = desk.objects()
    for byteCount in [0, 100, 8 << 20] {
      let put = try desk.start("coffer", ["put", "-", "/waiting", "--passcode-file", "passcode"])
      #expect(put.send(noise(byteCount)))
      if byteCount < 1 << 20 { waitForVault() }
      put.signal(SIGINT)
      let outcome = put.wait(leavingInputOpen: true)
      #expect(outcome.code == 130, "\(outcome.errors)")
      try expectOnlyKept(before)
    }
  }

  /// Waits until another program holds the vault: its log is there while it is open.
  private func waitForVault() {
    while !desk.exists("vault/index.sqlite-wal") { sched_yield() }
  }

  @Test func `what a Control-C cut short is not taken for the whole`() throws {
    let before = desk.objects()
    let put = try desk.start("coffer", ["put", "-", "/cut", "--passcode-file", "passcode"])
    #expect(put.send(noise(8 << 20)))
    // The program before it in the pipeline has gone by the time that this one comes to its signal.
    put.signal(SIGSTOP)
    put.signal(SIGINT)
    put.endInput()
    put.signal(SIGCONT)
    let outcome = put.wait()
    #expect(outcome.code == 130, "\(outcome.errors)")
    try expectOnlyKept(before)
  }

  @Test(arguments: [false, true])
  func `a signal that whoever started it ignores is ignored`(agent: Bool) throws {
    if agent { try desk.unlock() }
    defer { _ = try? desk.run("coffer", ["agent", "stop"]) }
    let options = agent ? "" : " --passcode-file passcode"
    let put = try desk.startShell("trap '' INT TERM QUIT; exec coffer put - /new" + options)
    #expect(put.send(noise(8 << 20)))
    for signal in [SIGINT, SIGTERM, SIGQUIT] { put.signal(signal) }
    #expect(put.send([1]))
    let outcome = put.wait()
    #expect(outcome.code == 0, "\(outcome.errors)")
    #expect(try desk.done("cat", "/new").bytes == noise(8 << 20) + [1])
  }

  @Test func `an agent keeps to it as well`() throws {
    let agent = try desk.startShell(
      "trap '' HUP INT; exec coffer agent run --idle-lock 0 --passcode-file passcode")
    #expect(agent.line() == "ready\n")
    for signal in [SIGHUP, SIGINT] { agent.signal(signal) }
    #expect(try desk.agentState == "unlocked")
    agent.signal(SIGUSR1)
    #expect(try desk.agentStatus("--until-locked")?["state"] as? String == "locked")
    agent.signal(SIGTERM)
    #expect(agent.wait().code == 0)
  }

  @Test func `a folder that was new goes with the put that was interrupted`() throws {
    let before = desk.objects()
    try FileManager.default.createDirectory(atPath: desk.path("tree/a"), withIntermediateDirectories: true)
    try desk.write("tree/first", noise(50_000))
    // A large file whose end is never reached in the time that the signal takes.
    try desk.write("tree/a/large", [1])
    #expect(truncate(desk.path("tree/a/large"), 1 << 34) == 0)
    let put = try desk.start("coffer", ["put", "-r", "tree", "/", "--passcode-file", "passcode"])
    waitForObject(beside: before, of: 4 << 20)
    put.signal(SIGINT)
    let outcome = put.wait()
    #expect(outcome.code == 130, "\(outcome.errors)")
    try expectOnlyKept(before)
  }

  @Test func `a get that nobody reads any more ends with its signal`() throws {
    try desk.done("put", "-", "/large", input: noise(4 << 20))
    for arguments in [["get", "/large", "-"], ["cat", "/large"]] {
      // One byte is read, and more than a pipe holds is left: the program waits in the midst of it.
      let get = try desk.start("coffer", arguments + ["--passcode-file", "passcode"])
      #expect(get.byte() == noise(1).first)
      get.signal(SIGINT)
      let outcome = get.wait()
      #expect(outcome.code == 130, "\(outcome.errors)")
      #expect(outcome.bytes.count < 4 << 20)
    }
    #expect(try desk.done("cat", "/large").bytes == noise(4 << 20))
  }

  @Test func `a get into a folder that is interrupted leaves nothing there`() throws {
    try FileManager.default.createDirectory(atPath: desk.path("tree"), withIntermediateDirectories: false)
    try desk.write("tree/large", [1])
    #expect(truncate(desk.path("tree/large"), 1 << 28) == 0)
    try desk.done("put", "-r", "tree", "/")
    let get = try desk.start("coffer", ["get", "-r", "/tree", "out", "--passcode-file", "passcode"])
    // The copy has its hidden name until it is whole.
    while desk.listing("out").count < 2 { sched_yield() }
    get.signal(SIGINT)
    let outcome = get.wait()
    #expect(outcome.code == 130, "\(outcome.errors)")
    #expect(desk.listing("out").isEmpty)
  }

  /// Asks the file system until an object beside those in `before` has `byteCount` bytes.
  private func waitForObject(beside before: [String], of byteCount: Int) {
    while !desk.objects().contains(where: { line in
      !before.contains(line) && (Int(line.split(separator: " ").last ?? "") ?? 0) >= byteCount
    }) {
      sched_yield()
    }
  }

  private func expectOnlyKept(_ objects: [String], sourceLocation: SourceLocation = #_sourceLocation) throws {
    #expect(try desk.done("ls", "-R").output == "kept\n", sourceLocation: sourceLocation)
    #expect(try desk.done("cat", "/kept").bytes == noise(200_000), sourceLocation: sourceLocation)
    #expect(desk.objects() == objects, sourceLocation: sourceLocation)
    #expect(desk.listing("tmp").isEmpty, sourceLocation: sourceLocation)
  }
}
