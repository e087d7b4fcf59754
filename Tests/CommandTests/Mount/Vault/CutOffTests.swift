import Glibc
import Synchronization
import Testing

/// What programs find in a mount that is taken from them while they use it, or that is torn from its server.
@Suite(.enabled(if: Ground.mountIsThere, Ground.missing)) struct CutOffTests {
  let ground: Ground

  init() throws { ground = try Ground(.mount) }

  private static let fileCount = 64
  private static let byteCount = 1 << 20

  /// Files that are read through descriptors which stay open.
  private func openFiles() throws -> [Handle] {
    try (0..<Self.fileCount).map { number in
      let path = ground.path + "/file-\(number)"
      try Kernel.makeFile(path, noise(Self.byteCount, seed: UInt64(number)))
      return try Handle(path, O_RDONLY)
    }
  }

  /// How many of the files still show something, wherever in them.
  private func readable(_ files: [Handle]) -> Int {
    files.count { file in
      stride(from: 0, to: Self.byteCount, by: 4096).contains { (try? file.read(1, at: $0))?.isEmpty == false }
    }
  }

  /// A program may fill the kernel's pages anew while they are dropped.
  @Test(.timeLimit(.minutes(10)), arguments: [["unmount", "--force"], ["agent", "stop"], ["lock", "--now"]])
  func `nothing stays readable where programs read until the end`(_ command: [String]) throws {
    let files = try openFiles()
    let hasEnded = Atomic(false)
    let outcomes = try inParallel(3) { number in
      if number == 2 {
        defer { hasEnded.store(true, ordering: .releasing) }
        return try ground.desk.run("coffer", command[0] == "unmount" ? command + [ground.path] : command).code
      }
      while !hasEnded.load(ordering: .acquiring) {
        for file in files { _ = try? file.read(Self.byteCount, at: 0) }
      }
      return 0
    }
    #expect(outcomes == [0, 0, 0])
    #expect(readable(files) == 0)
    guard command[0] == "lock" else { return }
    try ground.unlock()
    #expect(readable(files) == files.count)
  }

  /// What the kernel knows of names and files is more than content, and who stands in a folder of a mount that has ended need ask
  /// nobody for it.
  @Test(arguments: [["unmount", "--force"], ["agent", "stop"], ["umount", "-f"], ["umount", "-l"]])
  func `nothing is told of names where a mount was taken away`(_ command: [String]) throws {
    let path = ground.path + "/folder"
    try Kernel.mkdir(path)
    try Kernel.makeFile(path + "/file", "content\n")
    try Kernel.symlink("file", at: path + "/link")
    let folder = try Handle(path, O_RDONLY | O_DIRECTORY)
    let file = try Handle(path + "/file", O_RDONLY)
    let inside = "/proc/self/fd/\(folder.number)"
    // Twice: what the kernel is told once it has from itself.
    for _ in 0..<2 {
      #expect(try Set(Kernel.names(inside)) == ["file", "link"])
      #expect(try Kernel.stat(inside + "/file").size == 8 && Kernel.readLink(inside + "/link") == "file")
    }
    if command == ["umount", "-l"] {
      // Out of the tree, and still served: then the agent ends.
      try #require(ground.desk.run("/usr/bin/fusermount3", ["-uz", ground.path]).code == 0)
      #expect(try Kernel.stat(inside + "/file").size == 8)
      #expect(try ground.desk.run("coffer", ["agent", "stop"]).code == 0)
    } else if command[0] == "umount" {
      guard Person.canBeAnother else { return }
      #expect(umount2(ground.path, CInt(MNT_FORCE)) != 0 && errno == EBUSY)
      while let mounts = try ground.desk.agentStatus()?["mounts"] as? [String], !mounts.isEmpty { sched_yield() }
    } else {
      let ended = try ground.desk.run("coffer", command + (command[0] == "unmount" ? [ground.path] : []))
      #expect(ended.code == 0, "\(ended.errors)")
    }
    let tries: [(String, () throws -> Void)] = [
      ("names", { _ = try Kernel.names(inside) }),
      ("stat", { _ = try Kernel.stat(inside + "/file") }),
      ("stat of what is not there", { _ = try Kernel.stat(inside + "/missing") }),
      ("readlink", { _ = try Kernel.readLink(inside + "/link") }),
      ("open", { _ = try Handle(inside + "/file", O_RDONLY) }),
      ("fstat", { _ = try file.stat() }),
      ("fstat of the folder", { _ = try folder.stat() }),
      ("mkdir", { try Kernel.mkdir(inside + "/new") }),
    ]
    for (name, call) in tries {
      let refusal = outcome(call)
      // The last while the agent is ending.
      let refusals = [EACCES, ENOTCONN, ECONNABORTED].map { CallError($0) }
      #expect(refusal.map { refusals.contains($0) } ?? false, "\(name): \(refusal as Any)")
    }
  }

  /// As `umount -f` does it, and whoever writes to the connection's `abort`: the mount stays in the tree.
  @Test(.enabled(if: Person.canBeAnother, "only root may tear it off"))
  func `nothing stays readable in a mount that was torn off`()
    throws
  {
    let files = try openFiles()
    #expect(readable(files) == files.count)
    #expect(umount2(ground.path, CInt(MNT_FORCE)) != 0 && errno == EBUSY)
    while let mounts = try ground.desk.agentStatus()?["mounts"] as? [String], !mounts.isEmpty { sched_yield() }
    #expect(readable(files) == 0)
  }

  /// The kernel has no pages for who only appends where another mount may do so too, and asks for no sync then.
  ///
  /// - Parameter isOver: the other mount has ended.
  @Test(arguments: [O_DSYNC, O_SYNC], [false, true])
  func `what is appended in sync where there are two mounts survives the agent's end`(_ flag: CInt, isOver: Bool) throws
  {
    let desk = ground.desk
    let second = desk.path("second")
    try Kernel.mkdir(second)
    try desk.served("mount", second)
    defer { _ = try? desk.run("coffer", ["unmount", "--force", second]) }
    try Kernel.makeFile(ground.path + "/log", "first\n")
    try Handle(ground.path + "/log", O_RDWR).sync()
    if isOver { try desk.served("unmount", second) }
    let log = try Handle(ground.path + "/log", O_WRONLY | O_APPEND | flag)
    try log.write("second\n")
    kill(try desk.agentProcess(), SIGKILL)
    for place in [ground.path, second] { _ = try desk.run("coffer", ["unmount", "--force", place]) }
    try ground.unlock()
    #expect(try desk.served("cat", "/log").output == "first\nsecond\n")
  }

  /// Nor for who only writes.
  @Test(arguments: [O_DSYNC, O_SYNC])
  func `what is written to a new file in sync survives the agent's end`(_ flag: CInt) throws {
    try Handle(ground.path, O_RDONLY).sync()
    let file = try Handle(ground.path + "/file", O_CREAT | O_WRONLY | flag)
    try file.write("first\n")
    try file.write("second\n")
    kill(try ground.desk.agentProcess(), SIGKILL)
    _ = try ground.desk.run("coffer", ["unmount", "--force", ground.path])
    try ground.unlock()
    #expect(try ground.desk.served("cat", "/file").output == "first\nsecond\n")
  }
}
