import CofferTestSupport
import Foundation
import Glibc
import Testing

/// A copy of the whole vault, and nothing where it does not come to its end.
@Suite struct BackupTests {
  let desk: Desk

  init() throws {
    desk = try Desk()
    try desk.makeVault()
    try desk.done("put", "-", "/large", input: noise(300_000))
    try desk.done("put", "-", "/small", input: noise(500))
  }

  @Test func `a backup is the vault, prints where it is, and takes nothing from the original`() throws {
    // What a removal leaves to be done later goes into the copy, too.
    try desk.done("put", "-", "/removed", input: noise(100_000))
    try desk.done("rm", "/removed")
    let outcome = try desk.done("backup", "copy")
    #expect(outcome.value == desk.path("copy"))
    #expect(outcome.errors.isEmpty)
    let json = try desk.done("backup", "--json", desk.path("copy-2"))
    let answer = try #require(try JSONSerialization.jsonObject(with: Data(json.bytes)) as? [String: Any])
    #expect(answer["path"] as? String == desk.path("copy-2"))
    #expect(try #require(answer["bytes"] as? Int) >= 300_000)

    for _ in 0..<2 {
      #expect(try desk.done("ls", "--vault", "copy").output == "large\nsmall\n")
      #expect(try desk.done("cat", "/large", "--vault", "copy").bytes == noise(300_000))
    }
    try desk.done("verify", "--deep", "--vault", "copy")
    // A look into the copy takes nothing from the vault.
    let put = try desk.done("put", "-", "/more", input: noise(700))
    #expect(put.errors.isEmpty)
    // Now the copy is the older one, and can still be read.
    let older = try desk.done("cat", "/small", "--vault", "copy")
    #expect(older.bytes == noise(500) && older.errors.contains("older"))
    try desk.done("backup", "copy-of-copy", "--vault", "copy")
    #expect(try desk.done("cat", "/large", "--vault", "copy-of-copy").bytes == noise(300_000))
  }

  @Test func `a backup goes to a new or empty folder only`() throws {
    try FileManager.default.createDirectory(atPath: desk.path("empty"), withIntermediateDirectories: false)
    try FileManager.default.createSymbolicLink(atPath: desk.path("link"), withDestinationPath: desk.path("vault"))
    for (place, code, says) in [
      ("logs", 73, "not empty"), ("keys", 73, "not empty"), ("passcode", 73, "not a folder"),
      ("passcode/below", 73, "no such folder"),
      ("new/below", 73, "mkdir -p"), ("/proc/backup", 73, "cannot be written there"),
      ("vault", 64, "outside"), ("vault/backup", 64, "outside"), ("vault/objects/backup", 64, "outside"),
      ("link/backup", 64, "outside"), ("out/../vault/backup", 64, "outside"), ("", 64, "no name"),
    ] {
      let before = desk.listing("vault", "keys", "out")
      let outcome = try desk.coffer("backup", place)
      expect(outcome, code: Int32(code), says: [says])
      #expect(desk.listing("vault", "keys", "out") == before, "\(place)")
    }
    #expect(try desk.done("backup", "empty").value == desk.path("empty"))
    #expect(try desk.done("ls", "--vault", "empty").output == "large\nsmall\n")
    #expect(!desk.exists("new"))
  }

  @Test func `an interrupted backup leaves nothing that is a vault`() throws {
    try FileManager.default.createDirectory(atPath: desk.path("tree"), withIntermediateDirectories: false)
    for number in 0..<150 { try desk.write("tree/\(number)", noise(1 << 20, seed: UInt64(number))) }
    try desk.done("put", "-r", "tree", "/")
    for signal in [SIGINT, SIGTERM, SIGKILL] {
      let backup = try desk.start("coffer", ["backup", "copy", "--passcode-file", "passcode"])
      while desk.listing("copy/objects").count < 3 { sched_yield() }
      backup.signal(signal)
      let outcome = backup.wait()
      #expect(outcome.code == 128 + signal, "\(outcome.errors)")
      #expect(outcome.bytes.isEmpty)
      if signal == SIGKILL {
        try desk.refused(66, "not a vault", running: ["ls", "--vault", "copy"])
      } else {
        #expect(outcome.errors.contains("nothing was left half done"))
        #expect(!desk.exists("copy"))
      }
    }
    try desk.done("verify", "--deep")
  }

  @Test func `a vault in use is not backed up by another program`() throws {
    let holder = try desk.start("coffer", ["put", "-", "/x", "--passcode-file", "passcode"])
    #expect(holder.send(noise(1 << 20)))
    try desk.refused(75, "in use", running: ["backup", "copy"])
    #expect(!desk.exists("copy"))
    #expect(holder.wait().code == 0)
  }

  @Test(.enabled(if: MountedDisk.isPossible, "a disk that fills up is mounted for this test, which needs root"))
  func `a backup that does not fit leaves nothing`() throws {
    try desk.done("put", "-", "/larger", input: noise(3 << 20))
    let disk = try MountedDisk(in: desk.folder, mebibytes: 2)
    try desk.refused(
      73, "the disk that the backup goes to is full", running: ["backup", "disk/copy"], unchanged: ["disk"])
    withExtendedLifetime(disk) { #expect(desk.listing("disk").isEmpty) }
  }
}
