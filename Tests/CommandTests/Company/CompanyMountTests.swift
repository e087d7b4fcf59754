import Foundation
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
