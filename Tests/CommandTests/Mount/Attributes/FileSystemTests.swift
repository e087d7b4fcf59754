import Glibc
import Testing

/// What belongs to the file system as a whole.
@Suite struct FileSystemTests {
  @Test(arguments: Ground.Kind.here) func `statfs tells sizes that fit each other, by path and by handle`(
    kind: Ground.Kind
  ) throws {
    let plot = try Plot.on(kind)
    try plot.furnish()
    for name in ["file", "folder", "."] {
      let system = try Kernel.fileSystem(plot(name))
      #expect(system.f_namemax == 255)
      #expect(system.f_bsize > 0 && system.f_frsize > 0)
      #expect(system.f_blocks > 0 && system.f_bfree <= system.f_blocks && system.f_bavail <= system.f_bfree)
      #expect(system.f_ffree <= system.f_files)
      var open = statvfs()
      let handle = try Handle(plot(name), O_RDONLY)
      try CallError.check(fstatvfs(handle.number, &open))
      #expect(open.f_namemax == 255 && open.f_blocks == system.f_blocks && open.f_bsize == system.f_bsize)
    }
    #expect(outcome { _ = try Kernel.fileSystem(plot("missing")) } == CallError(ENOENT))
    #expect(outcome { _ = try Kernel.fileSystem(plot("file/x")) } == CallError(ENOTDIR))
    #expect(outcome { _ = try Kernel.fileSystem(plot("loop/x")) } == CallError(ELOOP))
  }

  @Test(arguments: Ground.Kind.here) func `everything that can be synced is synced`(kind: Ground.Kind) throws {
    let plot = try Plot.on(kind)
    try plot.furnish()
    for (name, flags) in [
      ("file", O_RDWR), ("file", O_RDONLY), ("file", O_WRONLY | O_APPEND), ("folder", O_RDONLY), (".", O_RDONLY),
    ] {
      let handle = try Handle(plot(name), flags)
      if flags & O_ACCMODE != O_RDONLY { try handle.write("x") }
      try handle.sync()
      try handle.syncData()
      try CallError.check(GNU.syncFileSystem(handle.number))
    }
    // A new name, a moved one and a removed one are there for a sync of their folder.
    let folder = try Handle(plot("folder"), O_RDONLY)
    try Kernel.makeFile(plot("folder/new"))
    try folder.sync()
    try Kernel.rename(plot("folder/new"), plot("folder/newer"))
    try folder.sync()
    try Kernel.unlink(plot("folder/newer"))
    try folder.sync()
    let gone = try Handle(plot("empty"), O_RDWR)
    try Kernel.unlink(plot("empty"))
    try gone.write("x")
    try gone.sync()
  }

  @Test(arguments: Ground.Kind.here) func `every node has one number, and one device has them all`(
    kind: Ground.Kind
  ) throws {
    let plot = try Plot.on(kind)
    try plot.furnish()
    let names = [
      "file", "empty", "folder", "folder/inside", "bare", "to-file", "to-folder", "dangling", "loop", "fifo",
    ]
    let stats = try names.map { try Kernel.stat(plot($0)) }
    #expect(Set(stats.map(\.number)).count == names.count)
    #expect(Set(stats.map(\.device)) == [try Kernel.stat(plot.path).device])
    for (name, stat) in zip(names, stats) {
      #expect(try Kernel.stat(plot(name)) == stat, "\(name)")
      if stat.kind == S_IFREG || stat.kind == S_IFDIR { #expect(try Handle(plot(name), O_RDONLY).stat() == stat) }
      #expect(try Handle(plot(name), GNU.pathOnly | O_NOFOLLOW).stat() == stat, "\(name)")
    }
    #expect(try Kernel.stat(plot("to-file"), following: true) == stats[0])
    #expect(try Kernel.stat(plot("folder/.")) == Kernel.stat(plot("folder")))
    #expect(try Kernel.stat(plot("folder/..")) == Kernel.stat(plot.path))
  }

  @Test(arguments: Ground.Kind.here) func `stat and access refuse what their manual pages say`(kind: Ground.Kind) throws
  {
    var rows: [Refused] = []
    let calls: [(String, (String) throws -> Void)] = [
      ("stat", { _ = try Kernel.stat($0, following: true) }), ("lstat", { _ = try Kernel.stat($0) }),
      ("access", { try Kernel.access($0, F_OK) }), ("statx", { _ = try StatX($0) }),
    ]
    for (name, call) in calls {
      rows += [
        Refused("\(name) of nothing", ENOENT) { try call($0("missing")) },
        Refused("\(name) of no name", ENOENT) { _ in try call("") },
        Refused("\(name) below nothing", ENOENT) { try call($0("no/x")) },
        Refused("\(name) below a file", ENOTDIR) { try call($0("file/x")) },
        Refused("\(name) of a file with a slash", ENOTDIR) { try call($0("file/")) },
        Refused("\(name) below a loop", ELOOP) { try call($0("loop/x")) },
        Refused("\(name) of too long a name", ENAMETOOLONG) { try call($0(String(repeating: "n", count: 256))) },
      ]
    }
    rows += [
      Refused("stat of a link to nothing", ENOENT) { _ = try Kernel.stat($0("dangling"), following: true) },
      Refused("stat of a loop", ELOOP) { _ = try Kernel.stat($0("loop"), following: true) },
      Refused("access by no known right", EINVAL) { try Kernel.access($0("file"), 64) },
      // Root as well: nobody may execute what nobody may execute.
      Refused("access to execute a file without a right", EACCES) { try Kernel.access($0("file"), X_OK) },
    ]
    try Refused.all(on: kind, rows)
  }
}
