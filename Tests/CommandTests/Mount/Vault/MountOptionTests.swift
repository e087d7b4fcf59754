import CofferSystem
import Foundation
import Glibc
import Testing

/// What the options of a mount mean to programs.
@Suite(.enabled(if: Ground.mountIsThere, Ground.missing)) struct MountOptionTests {
  @Test func `a mount for reading takes no change, by any call`() throws {
    let ground = try Ground(.mount)
    let plot = try ground.plot()
    try plot.furnish()
    try Kernel.setAttribute(plot("file"), "user.a", "1")
    try ground.unmount()
    try ground.mount(["--read-only"])
    let before = try Tree(plot.path)
    let calls: [(String, () throws -> Void)] = [
      ("open for writing", { try Kernel.open(plot("file"), O_WRONLY) }),
      ("open with O_TRUNC", { try Kernel.open(plot("file"), O_RDONLY | O_TRUNC) }),
      ("open with O_CREAT", { try Kernel.open(plot("new"), O_CREAT | O_RDONLY) }),
      ("mkdir", { try Kernel.mkdir(plot("new")) }),
      ("mknod", { try Kernel.makeNode(plot("new"), S_IFIFO) }),
      ("symlink", { try Kernel.symlink("x", at: plot("new")) }),
      ("link", { try Kernel.link(plot("file"), plot("new")) }),
      ("rename", { try Kernel.rename(plot("file"), plot("new")) }),
      ("unlink", { try Kernel.unlink(plot("file")) }),
      ("rmdir", { try Kernel.rmdir(plot("bare")) }),
      ("truncate", { try Kernel.truncate(plot("file"), to: 0) }),
      ("chmod", { try Kernel.chmod(plot("file"), 0o600) }),
      ("chown", { try Kernel.chown(plot("file"), group: 1) }),
      ("utimensat", { try Kernel.touch(plot("file")) }),
      ("setxattr", { try Kernel.setAttribute(plot("file"), "user.b", "1") }),
      ("removexattr", { try Kernel.removeAttribute(plot("file"), "user.a") }),
      ("access", { try Kernel.access(plot("file"), W_OK) }),
    ]
    for (name, call) in calls { #expect(outcome(call) == CallError(EROFS), "\(name)") }
    #expect(try Tree(plot.path).differences(from: before) == [])
    // A fifo is a way between programs and no part of the vault.
    #expect(outcome { try Kernel.open(plot("fifo"), O_RDWR) } == nil)
  }

  @Test(.enabled(if: AnotherUser.isPossible, "needs root, setpriv and python3"))
  func `without allow-other nobody else comes in, with it as far as modes let them`() throws {
    let ground = try Ground(.mount)
    try Kernel.makeFile(ground.path + "/file", "content")
    // The kernel asks who the process is, and not only whose files it works with.
    func read() throws -> RunningProgram.Outcome {
      try ground.desk.run("/usr/bin/setpriv", AnotherUser.options + ["/bin/cat", ground.path + "/file"])
    }
    #expect(try read().output == "content")
    try Kernel.chmod(ground.path + "/file", 0o640)
    #expect(try read().errors.contains("Permission denied"))
    try Kernel.chmod(ground.path + "/file", 0o644)
    try ground.unmount()
    // Its own folder has to let them pass, too, which is said.
    let hint = "chmod 755 \(ground.path)"
    for (mode, isTold) in [(mode_t(0o700), true), (0o710, false), (0o701, false)] {
      try ground.mount()
      try Kernel.chmod(ground.path, mode)
      try ground.unmount()
      let said = try ground.desk.served("mount", "--allow-other", ground.path).errors
      #expect(said.contains(hint) == isTold, "\(said)")
      try ground.unmount()
    }
    try ground.mount(isForOthers: false)
    #expect(try read().errors.contains("Permission denied"))
    #expect(try Kernel.text(ground.path + "/file") == "content")
  }

  @Test func `nothing in a mount gets privileges by being there`() throws {
    let ground = try Ground(.mount)
    let flags = try Kernel.fileSystem(ground.path).f_flag
    // ST_NOSUID and ST_NODEV.
    #expect(flags & 2 != 0 && flags & 4 != 0)
  }

  /// Whether idle processors are left to the driver for guests, which was told not to wait, and this user may ask it to keep
  /// them awake.
  private static let processorsCanBeKeptAwake =
    (try? KernelFile.text(of: "/sys/devices/system/cpu/cpuidle/current_driver")) == "haltpoll\n"
    && (try? KernelFile.text(of: "/sys/module/haltpoll/parameters/guest_halt_poll_ns")) == "0\n"
    && access("/dev/cpu_dma_latency", W_OK) == 0

  @Test(.enabled(if: processorsCanBeKeptAwake, "needs root in a guest whose driver cpuidle-haltpoll does not wait"))
  func `processors stay awake while a mount is busy, and no longer, and not where it saves power`() throws {
    let ground = try Ground(.mount)
    let agent = try ground.desk.agentProcess()
    func asks() throws -> Bool {
      let folder = "/proc/\(agent)/fd"
      return try Kernel.names(folder).contains { name in
        (try? Kernel.readLink(folder + "/" + name)) == "/dev/cpu_dma_latency"
      }
    }
    /// Keeps the mount busy until it asks; `false` where it does not.
    func isSeenToAsk(within requests: Int) throws -> Bool {
      for request in 0..<requests {
        try Kernel.chmod(ground.path, request.isMultiple(of: 2) ? 0o700 : 0o755)
        if request.isMultiple(of: 256), try asks() { return true }
      }
      return false
    }
    #expect(try isSeenToAsk(within: 200_000))
    while try asks() { sched_yield() }
    try ground.unmount()
    try ground.mount(["--save-power"])
    #expect(try !isSeenToAsk(within: 10_000))
  }

  @Test func `a folder of the vault is mounted by itself`() throws {
    let ground = try Ground(.mount)
    let plot = try ground.plot()
    try plot.furnish()
    let before = try Kernel.stat(plot("folder/inside"))
    try ground.unmount()
    try ground.mount(["--folder", "/plot-1/folder"])
    #expect(try Kernel.names(ground.path) == ["inside"])
    let inside = try Kernel.stat(ground.path + "/inside")
    #expect(inside.number == before.number && inside.modified == before.modified && inside.size == 7)
    #expect(try Kernel.stat(ground.path).kind == S_IFDIR)
    try Kernel.rename(ground.path + "/inside", ground.path + "/renamed")
    #expect(try ground.desk.served("ls", "/plot-1/folder").output == "renamed\n")
    // The folder's own parent is outside.
    #expect(try Kernel.stat(ground.path + "/..").number == Kernel.stat(ground.desk.root).number)
  }
}
