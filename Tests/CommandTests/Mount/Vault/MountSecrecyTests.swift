import CofferSystem
import Foundation
import Glibc
import Testing

/// What is to be learned of a mounted vault without looking into the mount.
@Suite(.enabled(if: Fuse.isThere, "/dev/fuse is not there, or not ours to open")) struct MountSecrecyTests {
  let desk: Desk

  init() throws {
    desk = try Desk()
    try desk.makeVault()
    for name in ["mnt", "second"] { try Kernel.mkdir(desk.path(name)) }
  }

  @Test
  func `neither names nor content show in what the agent says, stores or is refused, whatever is done in a mount`()
    throws
  {
    let canary = "CANARY-\(UUID().uuidString)"
    let agent = try desk.start("coffer", ["agent", "run", "--passcode-file", "passcode", "--idle-lock", "0"])
    #expect(agent.line() == "ready\n")
    try desk.served("mount", "mnt")
    try desk.served("mount", "--read-only", "second")
    let top = desk.path("mnt") + "/" + canary
    try Kernel.mkdir(top)
    try Kernel.makeFile(top + "/file-\(canary)", Array(repeating: Array(canary.utf8), count: 4000).flatMap { $0 })
    try Kernel.symlink(canary, at: top + "/link")
    try Kernel.setAttribute(top, "user.\(canary)", canary)
    let file = try Handle(top + "/file-\(canary)", O_RDWR)
    let map = try Mapping(of: file, count: 4096)
    map[10..<12] = Array("xx".utf8)

    // What fails, too.
    let tries: [(CInt, () throws -> Void)] = [
      (ENOENT, { _ = try Kernel.stat(top + "/absent") }), (EEXIST, { try Kernel.mkdir(top) }),
      (ENOTEMPTY, { try Kernel.rmdir(top) }), (ENOTDIR, { try Kernel.mkdir(top + "/file-\(canary)/\(canary)") }),
      (ENAMETOOLONG, { try Kernel.mkdir(top + "/" + String(repeating: canary, count: 9)) }),
      (EROFS, { try Kernel.mkdir(desk.path("second") + "/\(canary)-new") }),
      (EOPNOTSUPP, { try file.change(RangeChange.collapse, 0, 4096) }),
      (EFBIG, { try file.truncate(to: .max) }),
    ]
    for (number, call) in tries { #expect(outcome(call) == CallError(number)) }
    #expect(try desk.run("coffer", ["unmount", "mnt"]).code == 75)
    #expect(try desk.run("coffer", ["mount", "--folder", "/\(canary)/absent", "second"]).code != 0)
    #expect(try places(of: canary) == [])
    try desk.served("lock", "--now")
    #expect(outcome { _ = try file.read(1, at: 0) } == CallError(EACCES))
    #expect(outcome { try Kernel.makeFile(top + "/locked-\(canary)") } == CallError(EACCES))
    try desk.unlock()
    #expect(try places(of: canary) == [])
    let mounts = try KernelFile.text(of: "/proc/self/mountinfo")
    #expect(!mounts.contains(canary))
    #expect(try desk.run("coffer", ["unmount", "--force", "mnt"]).code == 0)
    agent.signal(SIGTERM)
    let ended = agent.wait()
    #expect(ended.code == 0 && ended.output.isEmpty, "\(ended.output)")
    #expect(try places(of: canary) == [])
    // The control: it was there to be found.
    #expect(try desk.done("ls", "-R").output.contains("\(canary)/file-\(canary)"))
  }

  /// The files below the desk's folder, but for the mounts, that have `text` in their bytes or their names.
  private func places(of text: String) throws -> [String] {
    try Kernel.names(desk.root).filter { !["mnt", "second"].contains($0) }.flatMap { top in
      let below = FileManager.default.enumerator(atPath: desk.path(top))?.allObjects as? [String] ?? []
      return try ([top] + below.map { "\(top)/\($0)" }).filter { path in
        if path.contains(text) { return true }
        guard try Kernel.stat(desk.path(path)).kind == S_IFREG else { return false }
        return Data(try desk.read(path)).range(of: Data(text.utf8)) != nil
      }
    }.sorted()
  }
}
