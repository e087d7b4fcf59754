import CofferTestSupport
import Foundation
import Testing

/// A disk without room: nothing of what is there is lost, and what does not fit is not there in part.
@Suite(.enabled(if: MountedDisk.isPossible, "a disk that fills up is mounted for these tests, which needs root"))
struct FullDiskTests {
  let desk: Desk
  let disk: MountedDisk

  init() throws {
    desk = try Desk()
    disk = try desk.makeVault(onDiskOf: 8)
    try desk.done("put", "-", "/large", input: noise(1 << 20))
    try desk.done("put", "-", "/small", input: noise(500))
  }

  @Test func `a put that does not fit leaves everything as it was, and room for what does`() throws {
    try desk.write("too-large", noise(16 << 20))
    let objects = desk.objects()
    for arguments in [["put", "too-large", "/"], ["put", "-", "/stream"], ["put", "-", "/large"]] {
      try desk.refused(
        73, "the disk is full", running: arguments,
        input: arguments[1] == "-" ? noise(16 << 20) : [], unchanged: ["tmp"])
      #expect(desk.objects() == objects)
      try expectIntact()
    }
    try desk.done("put", "-", "/later", input: noise(64 << 10, seed: 7))
    #expect(try desk.done("cat", "/later").bytes == noise(64 << 10, seed: 7))
  }

  private func fill(_ name: String = "filler") throws {
    _ = try desk.run("/bin/sh", ["-c", "cat /dev/zero > disk/\(name)"])
  }

  @Test func `with no room at all, what is there can be taken out and removed, and a removal makes room`() throws {
    try fill()
    #expect(try desk.done("cat", "/large").bytes == noise(1 << 20))
    #expect(try desk.done("ls").output == "large\nsmall\n")
    try desk.refused(73, "full", running: ["put", "-", "/more"], input: noise(300_000))
    try desk.done("rm", "/large")
    try desk.done("put", "-", "/more", input: noise(300_000, seed: 5))
    #expect(try desk.done("cat", "/more").bytes == noise(300_000, seed: 5))
    #expect(try desk.done("cat", "/small").bytes == noise(500))
    try desk.remove("disk/filler")
    try desk.done("put", "-", "/large", input: noise(1 << 20))
    try expectIntact(also: "more\n", after: "large\n")
    try desk.done("verify", "--deep")
  }

  @Test func `what is kept for removals is used by nothing else`() throws {
    try fill()
    try desk.refused(73, "full", running: ["put", "-", "/one"], input: noise(300))
    try desk.refused(73, "full", running: ["mkdir", "/folder"])
    try fill("filler-2")
    // Nothing is left but what is kept.
    try desk.done("rm", "/large")
    try desk.done("rm", "/small")
    #expect(try desk.done("ls").output == "")
    try desk.done("put", "-", "/one", input: noise(300))
    #expect(try desk.done("cat", "/one").bytes == noise(300))
    try desk.done("verify", "--deep")
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

  private func expectIntact(
    also more: String = "", after first: String = "", sourceLocation: SourceLocation = #_sourceLocation
  ) throws {
    let names = first.isEmpty ? more + "large\nsmall\n" : first + more + "small\n"
    #expect(try desk.done("ls").output == names, sourceLocation: sourceLocation)
    #expect(try desk.done("cat", "/large").bytes == noise(1 << 20), sourceLocation: sourceLocation)
    #expect(try desk.done("cat", "/small").bytes == noise(500), sourceLocation: sourceLocation)
  }
}
