import CofferSystem
import CofferTestSupport
import Foundation
import Testing

/// A desk with a vault, and two folders for mounts, which end with it.
class MountDesk {
  let desk: Desk

  init() throws {
    desk = try Desk()
    try desk.makeVault()
    for name in ["mnt", "second"] { try makeFolder(name) }
  }

  deinit {
    for name in ["mnt", "second"] { _ = try? desk.run("coffer", ["unmount", "--force", desk.path(name)]) }
    _ = try? desk.run("coffer", ["agent", "stop"])
  }

  func makeFolder(_ name: String) throws {
    try FileManager.default.createDirectory(atPath: desk.path(name), withIntermediateDirectories: false)
  }

  /// What a shell's command in the desk's folder prints; it must end with 0.
  @discardableResult
  func shell(_ command: String, sourceLocation: SourceLocation = #_sourceLocation) throws -> String {
    let outcome = try desk.run("/bin/sh", ["-c", command])
    #expect(outcome.code == 0, "\(command): \(outcome.errors)", sourceLocation: sourceLocation)
    return outcome.output
  }

  func fails(_ command: String, _ says: String, sourceLocation: SourceLocation = #_sourceLocation) throws {
    let outcome = try desk.run("/bin/sh", ["-c", command])
    #expect(outcome.code != 0 && outcome.errors.contains(says), "\(outcome.errors)", sourceLocation: sourceLocation)
  }

  var isMounted: Bool {
    get throws { try KernelFile.text(of: "/proc/self/mountinfo").contains(desk.path("mnt") + " ") }
  }

  func expectTold(
    by ended: RunningProgram.Outcome, sourceLocation: SourceLocation = #_sourceLocation
  ) {
    let told = "programs used files in the mount at \(desk.path("mnt")), which has ended (process "
    #expect(ended.errors.contains(told), "\(ended.errors)", sourceLocation: sourceLocation)
  }
}
