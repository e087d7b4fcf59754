import Foundation
import Testing

/// A disk without room: nothing of what is there is lost, and what does not fit is not there in part.
@Suite(.enabled(if: SmallDisk.isPossible, "a disk that fills up is mounted for these tests, which needs root"))
struct FullDiskTests {
  let desk: Desk
  let disk: SmallDisk

  init() throws {
    desk = try Desk()
    disk = try SmallDisk(desk, "disk", mebibytes: 8)
    desk.environment["COFFER_VAULT"] = desk.path("disk/vault")
    try desk.done("init")
    try desk.done("put", "-", "/large", input: noise(1 << 20))
    try desk.done("put", "-", "/small", input: noise(500))
  }

  @Test func `a put that does not fit leaves everything as it was, and room for what does`() throws {
    try desk.write("too-large", noise(16 << 20))
    let objects = desk.objects()
    for arguments in [["put", "too-large", "/"], ["put", "-", "/stream"], ["put", "-", "/large"]] {
      try desk.refused(
        73, "the disk is full; nothing was lost", running: arguments,
        input: arguments[1] == "-" ? noise(16 << 20) : [], unchanged: ["tmp"])
      #expect(desk.objects() == objects)
      try expectIntact()
    }
    try desk.done("put", "-", "/later", input: noise(64 << 10, seed: 7))
    #expect(try desk.done("cat", "/later").bytes == noise(64 << 10, seed: 7))
  }

  @Test func `with no room at all, what is there can be taken out, and the vault goes on when there is some again`()
    throws
  {
    _ = try desk.run("/bin/sh", ["-c", "cat /dev/zero > disk/filler"])
    #expect(try desk.done("cat", "/large").bytes == noise(1 << 20))
    #expect(try desk.done("ls").output == "large\nsmall\n")
    try desk.refused(73, "full", running: ["put", "-", "/more"], input: noise(300_000))
    try desk.refused(73, "full", running: ["put", "-", "/more"], input: noise(300))
    try desk.remove("disk/filler")
    try expectIntact()
    try desk.done("put", "-", "/more", input: noise(300))
    #expect(try desk.done("cat", "/more").bytes == noise(300))
  }

  @Test func `a get to a full disk leaves nothing there`() throws {
    try desk.done("put", "-", "/big", input: noise(2 << 20))
    _ = try desk.run("/bin/sh", ["-c", "head -c 3500000 /dev/zero > disk/filler; mkdir disk/out"])
    try desk.refused(73, "full", running: ["get", "/big", "disk/out"], unchanged: ["disk/out"])
    #expect(desk.listing("disk/out").isEmpty)
    try expectIntact(also: "big\n")
  }

  @Test func `a vault that does not fit is not made`() throws {
    _ = try desk.run("/bin/sh", ["-c", "cat /dev/zero > disk/filler"])
    let keys = desk.listing("keys")
    try desk.refused(73, "full", running: ["init", "--vault", "disk/second"], unchanged: ["disk"])
    #expect(!desk.exists("disk/second"))
    #expect(desk.listing("keys") == keys)
  }

  private func expectIntact(also more: String = "", sourceLocation: SourceLocation = #_sourceLocation) throws {
    #expect(try desk.done("ls").output == more + "large\nsmall\n", sourceLocation: sourceLocation)
    #expect(try desk.done("cat", "/large").bytes == noise(1 << 20), sourceLocation: sourceLocation)
    #expect(try desk.done("cat", "/small").bytes == noise(500), sourceLocation: sourceLocation)
  }
}
