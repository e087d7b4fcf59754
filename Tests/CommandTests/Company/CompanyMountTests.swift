import Foundation
import Glibc
import Testing

/// A mount, and a company that no longer wants it.
@Suite(.enabled(if: Fuse.isThere, "/dev/fuse is not there, or not ours to open"))
struct CompanyMountTests {
  @Test func `a mount that policy no longer allows is taken away as soon as the policy changes`() async throws {
    let company = try await CompanyDesk(ownerActions: ["import", "mount"])
    let desk = company.desk
    try desk.done("put", "passcode", "/file")
    try FileManager.default.createDirectory(atPath: desk.path("mounted"), withIntermediateDirectories: false)
    let watch = try company.linkedAgent()
    try watch.until("confirmed")
    try desk.served("mount", desk.path("mounted"))
    #expect(try desk.read("mounted/file") == Array((Desk.passcode + "\n").utf8))
    try await company.server.allowOwner(["import"])
    try watch.until("applied")
    #expect(try desk.agentStatus()?["mounts"] as? [String] == [])
    #expect(!desk.exists("mounted/file"))
    try desk.unserved(77, "mount", "mount", desk.path("mounted"))
    #expect(watch.end().code == 130)
    try desk.served("agent", "stop")
  }

  /// Somebody has taken it out of the tree, and a program still stands in it.
  @Test func `a mount that policy no longer allows is taken from programs that use it, wherever it is`() async throws {
    let company = try await CompanyDesk(ownerActions: ["import", "mount"])
    let desk = company.desk
    let place = desk.path("mounted")
    try FileManager.default.createDirectory(atPath: place, withIntermediateDirectories: false)
    let watch = try company.linkedAgent()
    for isInTree in [true, false] {
      try desk.served("mount", place)
      defer { _ = try? desk.run("coffer", ["unmount", "--force", place]) }
      try Kernel.makeFile(place + "/file", noise(200_000))
      let file = try Handle(place + "/file", O_RDWR)
      #expect(try file.readAll() == noise(200_000))
      if !isInTree { try #require(desk.run("/usr/bin/fusermount3", ["-uz", place]).code == 0) }
      #expect(try file.read(5, at: 100) == Array(noise(200_000)[100..<105]))
      try file.write("written", at: 0)
      try await company.server.allowOwner(["import"])
      try watch.until("applied")
      for position in stride(from: 0, to: 200_000, by: 4096) {
        #expect(throws: (any Error).self) { try file.read(1, at: position) }
      }
      #expect(throws: (any Error).self) { try file.stat() }
      #expect(throws: (any Error).self) { try file.write("x", at: 0) }
      #expect(try Kernel.names(place) == [] && desk.agentStatus()?["mounts"] as? [String] == [])
      try await company.server.allowOwner(["import", "mount"])
      try watch.until("applied")
      // What was written before is not lost.
      try desk.served("mount", place)
      #expect(try Kernel.text(place + "/file").hasPrefix("written"))
      try Kernel.unlink(place + "/file")
      try desk.served("unmount", place)
    }
    #expect(watch.end().code == 130)
    try desk.served("agent", "stop")
  }

  @Test func `a wipe takes a mount away, too`() async throws {
    let company = try await CompanyDesk(ownerActions: ["import", "mount"])
    let desk = company.desk
    try desk.done("put", "passcode", "/file")
    try FileManager.default.createDirectory(atPath: desk.path("mounted"), withIntermediateDirectories: false)
    let watch = try company.linkedAgent()
    try desk.served("mount", desk.path("mounted"))
    let order = try await company.order("wipe")
    try watch.until("wiped")
    #expect(!desk.exists("mounted/file"))
    _ = watch.program.wait()
    _ = try await company.wait(for: order, toBe: "done")
    #expect(!desk.exists("keys/\(company.vaultID)"))
  }
}
