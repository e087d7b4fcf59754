import Foundation
import Glibc
import Testing

/// What a lock takes away, and what brings it back.
@Suite final class LockTests {
  let desk: Desk

  init() throws {
    desk = try Desk()
    try desk.makeVault()
    for name in ["small", "large"] {
      try desk.done("put", "-", "/\(name)", input: noise(name == "small" ? 9 : 300_000))
    }
    for protection in ["complete-unless-open", "until-first-unlock", "none"] {
      try desk.done("mkdir", "/\(protection)")
      try desk.done("protect", "/\(protection)", protection)
      try desk.done("put", "-", "/\(protection)/file", input: noise(100_000, seed: 7))
    }
  }

  deinit { _ = try? desk.run("coffer", ["agent", "stop"]) }

  @Test func `a locked vault is listed, and read as its classes say`() throws {
    try desk.unlock()
    let listing = try desk.served("ls", "-lR").output
    let said = try desk.served("lock", "--now").output
    #expect(said.contains("names, attributes, targets of links, and files of the classes"), "\(said)")
    #expect(try desk.agentState == "locked")
    #expect(try desk.served("ls", "-lR").output == listing)
    for name in ["small", "large", "complete-unless-open/file"] {
      try desk.unserved(77, "the vault is locked; unlock it with: coffer unlock", "cat", "/\(name)")
    }
    try desk.unserved(77, "locked", "get", "/large", "out")
    for name in ["until-first-unlock", "none"] {
      #expect(try desk.served("cat", "/\(name)/file").bytes == noise(100_000, seed: 7))
    }
    try desk.unserved(77, "locked", "put", "-", "/new", input: [1])
    try desk.unserved(77, "locked", "put", "-", "/large", input: [1])
    try desk.served("put", "-", "/complete-unless-open/new", input: noise(20_000))
    try desk.unserved(77, "locked", "cat", "/complete-unless-open/new")
    try desk.served("put", "--deposit", "-", "/deposited", input: noise(30_000, seed: 8))
    try desk.unserved(73, "taken", "put", "--deposit", "-", "/large", input: [1])
    try desk.unserved(77, "locked", "cat", "/deposited")
    #expect(try desk.served("stat", "/deposited").output.contains("complete-unless-open"))
    #expect(desk.listing("out").isEmpty)

    try desk.write("wrong", "no passcode\n")
    expect(
      try desk.run("coffer", ["unlock", "--passcode-file", "wrong"]), code: 77, says: ["the passcode is wrong"])
    #expect(try desk.agentState == "locked")
    let process = try desk.agentProcess()
    try desk.unlock()
    #expect(try desk.agentProcess() == process)
    #expect(try desk.served("cat", "/large").bytes == noise(300_000))
    #expect(try desk.served("cat", "/complete-unless-open/new").bytes == noise(20_000))
    #expect(try desk.served("cat", "/deposited").bytes == noise(30_000, seed: 8))
    #expect(try desk.served("stat", "/deposited").output.contains("protection  complete\n"))
  }

  @Test func `a lock leaves time to finish, unless it is to be at once`() throws {
    try desk.unlock("--grace", "3600")
    #expect(try desk.served("lock").output.contains("has 3600 seconds"))
    #expect(try desk.agentState == "locking")
    try desk.unserved(77, "locked", "cat", "/large")
    try desk.served("lock", "--now")
    #expect(try desk.agentState == "locked")
    try desk.unlock()
    #expect(try desk.agentState == "unlocked")
  }

  @Test func `a vault that nobody uses locks`() throws {
    try desk.unlock("--idle-lock", "0.0001", "--grace", "0")
    #expect(try desk.agentStatus("--until-locked")?["state"] as? String == "locked")
    try desk.unserved(77, "locked", "cat", "/large")
    try desk.unlock()
    #expect(try desk.agentStatus("--until-locked")?["state"] as? String == "locked")
  }

  @Test(arguments: [SIGHUP, SIGUSR1])
  func `a signal locks at once, whatever the grace period`(signal: Int32) throws {
    try desk.unlock("--grace", "3600")
    #expect(try desk.served("lock").output.contains("has 3600 seconds"))
    #expect(try desk.served("lock").output.contains("still has a part"))
    let process = try desk.agentProcess()
    kill(process, signal)
    #expect(try desk.agentStatus("--until-locked")?["state"] as? String == "locked")
    #expect(try desk.agentProcess() == process)
    try desk.unserved(77, "locked", "cat", "/large")
  }

  @Test func `a protection class can be changed, and is shown`() throws {
    #expect(try desk.done("stat", "/large").output.contains("protection  complete\n"))
    try desk.done("protect", "/large", "none")
    #expect(try desk.done("ls", "-l", "/large").output.contains(" none "))
    try desk.done("protect", "/large", "complete")
    #expect(try desk.done("ls", "-l", "/large").output.contains(" complete "))
    #expect(try desk.done("cat", "/large").bytes == noise(300_000))
    try desk.refused(64, "the classes are complete, complete-unless-open", running: ["protect", "/large", "high"])
    try desk.refused(66, "no such file", running: ["protect", "/absent", "none"])
  }
}
