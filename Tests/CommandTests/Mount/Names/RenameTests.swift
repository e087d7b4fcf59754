import Glibc
import Testing

/// rename(2) and renameat2(2).
@Suite struct RenameTests {
  /// As releases are switched: who has just found the link shall get somewhere.
  @Test(arguments: Ground.Kind.here) func `a link that was just replaced can still be followed`(kind: Ground.Kind)
    throws
  {
    let plot = try Plot.on(kind)
    for isSynced in [false, true] {
      try Kernel.symlink("first", at: plot("live"))
      let found = try Handle(plot("live"), GNU.pathOnly | O_NOFOLLOW)
      try Kernel.symlink("second", at: plot("next"))
      try Kernel.rename(plot("next"), plot("live"))
      if isSynced { try Handle(plot.path, O_RDONLY).sync() }
      var target = [UInt8](repeating: 0, count: 64)
      let count = target.withUnsafeMutableBytes { bytes in
        readlinkat(found.number, "", bytes.bindMemory(to: CChar.self).baseAddress!, bytes.count)
      }
      #expect(count >= 0 && String(decoding: target.prefix(max(0, count)), as: UTF8.self) == "first")
      #expect(try Kernel.readLink(plot("live")) == "second")
      try Kernel.unlink(plot("live"))
    }
  }

  @Test(arguments: Ground.Kind.here) func `it refuses what its manual page says`(kind: Ground.Kind) throws {
    let long = String(repeating: "n", count: 256)
    func row(_ what: String, _ error: CInt, _ old: String, _ new: String, flags: CUnsignedInt = 0) -> Refused {
      Refused("\(what), flags \(flags)", error) { try Kernel.rename($0(old), $0(new), flags: flags) }
    }
    var rows: [Refused] = []
    for flags in [0, RenameFlag.noReplace, RenameFlag.exchange] {
      rows += [
        row("nothing", ENOENT, "missing", "new", flags: flags),
        row("from a folder that is not there", ENOENT, "no/file", "new", flags: flags),
        row("to a folder that is not there", ENOENT, "file", "no/new", flags: flags),
        row("from below a file", ENOTDIR, "file/x", "new", flags: flags),
        row("to below a file", ENOTDIR, "empty", "file/x", flags: flags),
        row("from below a loop", ELOOP, "loop/x", "new", flags: flags),
        row("a name of 256 bytes", ENAMETOOLONG, long, "new", flags: flags),
        row("to a name of 256 bytes", ENAMETOOLONG, "file", long, flags: flags),
      ]
    }
    rows += [
      row("a folder into itself", EINVAL, "folder", "folder/new"),
      row("a folder into itself", EINVAL, "folder", "folder/new", flags: RenameFlag.noReplace),
      row("a file to a name of a folder", EISDIR, "file", "bare"),
      row("a folder to a name of a file", ENOTDIR, "bare", "file"),
      row("a folder to a name of a link to a folder", ENOTDIR, "bare", "to-folder"),
      row("a folder to a full one's name", ENOTEMPTY, "bare", "folder"),
      row("a file to a new name with a slash", ENOTDIR, "file", "new/"),
      row("something below to what is above it", ENOTEMPTY, "folder/inside", "folder"),
      row("a taken name", EEXIST, "file", "empty", flags: RenameFlag.noReplace),
      row("a folder's name", EEXIST, "file", "bare", flags: RenameFlag.noReplace),
      row("a link's name", EEXIST, "file", "dangling", flags: RenameFlag.noReplace),
      row("the same name", EEXIST, "file", "file", flags: RenameFlag.noReplace),
      row("another name of the same", EEXIST, "file", "again", flags: RenameFlag.noReplace),
      row("nothing to exchange with", ENOENT, "file", "new", flags: RenameFlag.exchange),
      row("exchange with what is inside", EINVAL, "folder", "folder/inside", flags: RenameFlag.exchange),
      row("exchange with what is around", EINVAL, "folder/inside", "folder", flags: RenameFlag.exchange),
      row("both flags", EINVAL, "file", "empty", flags: RenameFlag.exchange | RenameFlag.noReplace),
      row("an unknown flag", EINVAL, "file", "new", flags: 64),
      row("exchange and whiteout", EINVAL, "file", "empty", flags: RenameFlag.exchange | RenameFlag.whiteout),
      Refused("to another file system", EXDEV) { try Kernel.rename($0("file"), "/proc/new") },
      Refused("from another file system", EXDEV) { try Kernel.rename("/proc/version", $0("new")) },
      Refused("a folder as .", EBUSY) { try Kernel.rename($0("folder/."), $0("new")) },
      Refused("a folder as ..", EBUSY) { try Kernel.rename($0("folder/.."), $0("new")) },
      Refused("to .", EBUSY) { try Kernel.rename($0("file"), $0("folder/.")) },
    ]
    try Refused.all(on: kind, rows)
  }

  @Test(arguments: Ground.Kind.here) func `what is replaced goes, and what replaces it stays what it is`(
    kind: Ground.Kind
  ) throws {
    // Old name and new name of every sort that fits, in one folder and across two.
    let fits: [(String, String)] = [
      ("file", "empty"), ("file", "to-file"), ("file", "dangling"), ("file", "fifo"), ("file", "loop"),
      ("to-file", "empty"), ("to-folder", "file"), ("fifo", "file"), ("folder", "bare"), ("bare", "bare-too"),
      ("dangling", "folder/inside"), ("folder/inside", "empty"), ("file", "folder/inside"), ("folder", "new"),
      ("file", "folder/new"), ("bare", "folder/new"), ("folder/inside", "new"),
    ]
    for (old, new) in fits {
      let plot = try Plot.on(kind)
      try plot.furnish()
      try Kernel.mkdir(plot("bare-too"))
      let moved = try Kernel.stat(plot(old))
      let content = moved.kind == S_IFREG ? try Kernel.content(plot(old)) : []
      let inside = moved.kind == S_IFDIR ? try Kernel.names(plot(old)) : []
      let count = try Tree(plot.path).nodes.count
      let wasThere = try Kernel.exists(plot(new))
      let held = wasThere ? try Handle(plot(new), GNU.pathOnly | O_NOFOLLOW) : nil
      let linksBefore = try held?.stat().links
      try Kernel.rename(plot(old), plot(new))
      let stat = try Kernel.stat(plot(new))
      #expect(stat.number == moved.number && stat.kind == moved.kind && stat.links == moved.links, "\(old) to \(new)")
      #expect(stat.modified == moved.modified, "\(old) to \(new)")
      #expect(try !Kernel.exists(plot(old)), "\(old) to \(new)")
      #expect(try Tree(plot.path).nodes.count == count - (wasThere ? 1 : 0), "\(old) to \(new)")
      if stat.kind == S_IFREG { #expect(try Kernel.content(plot(new)) == content) }
      if stat.kind == S_IFDIR { #expect(try Kernel.names(plot(new)) == inside) }
      if let held, let linksBefore {
        let links = try held.stat().links
        #expect(links == (linksBefore == 2 && stat.kind == S_IFDIR ? 0 : linksBefore - 1), "\(old) over \(new)")
      }
    }
  }

  @Test(arguments: Ground.Kind.here) func `two names of one file stay where one is to replace the other`(
    kind: Ground.Kind
  ) throws {
    let plot = try Plot.on(kind)
    try plot.furnish()
    let before = try Tree(plot.path)
    try Kernel.rename(plot("file"), plot("again"))
    try Kernel.rename(plot("file"), plot("file"))
    try Kernel.rename(plot("folder"), plot("folder"))
    #expect(try Tree(plot.path).differences(from: before) == [])
  }

  @Test(arguments: Ground.Kind.here) func `an exchange gives each the other's name`(kind: Ground.Kind) throws {
    let names = ["file", "empty", "folder", "bare", "to-file", "dangling", "fifo", "folder/inside", "bare/deep"]
    for one in names {
      for two in names where one < two && !two.hasPrefix(one + "/") {
        let plot = try Plot.on(kind)
        try plot.furnish()
        try Kernel.mkdir(plot("bare/deep"))
        let (first, second) = (try Kernel.stat(plot(one)), try Kernel.stat(plot(two)))
        let (folder, bare) = (try Kernel.stat(plot("folder")), try Kernel.stat(plot("bare")))
        try Kernel.rename(plot(one), plot(two), flags: RenameFlag.exchange)
        // One of them may have taken the other's folder with it.
        guard !one.hasPrefix("folder") && !one.hasPrefix("bare") || one.contains("/") == two.contains("/") else {
          continue
        }
        let (newFirst, newSecond) = (try Kernel.stat(plot(one)), try Kernel.stat(plot(two)))
        #expect(newFirst.number == second.number && newFirst.kind == second.kind, "\(one) and \(two)")
        #expect(newSecond.number == first.number && newSecond.kind == first.kind, "\(one) and \(two)")
        if two == "folder/inside" {
          #expect(try Kernel.stat(plot("folder")).links == folder.links + (first.kind == S_IFDIR ? 1 : 0))
        }
        if one == "bare/deep" {
          #expect(try Kernel.stat(plot("bare")).links == bare.links - (second.kind == S_IFDIR ? 0 : 1))
        }
      }
    }
  }

  @Test(arguments: Ground.Kind.here) func `an open file keeps its content through every rename`(
    kind: Ground.Kind
  ) throws {
    let plot = try Plot.on(kind)
    try plot.furnish()
    let replaced = try Handle(plot("empty"), O_RDWR)
    let moved = try Handle(plot("file"), O_RDWR)
    try replaced.writeAll(noise(50_000))
    try Kernel.rename(plot("file"), plot("empty"))
    try moved.write("!", at: 7)
    #expect(try Kernel.text(plot("empty")) == "content!")
    #expect(try replaced.readAll() == noise(50_000))
    #expect(try replaced.stat().links == 0)
    try Kernel.rename(plot("folder"), plot("bare/moved"))
    let inside = try Handle(plot("bare/moved/inside"), O_RDWR)
    try Kernel.rename(plot("bare"), plot("outer"))
    try inside.write("I", at: 0)
    #expect(try Kernel.text(plot("outer/moved/inside")) == "Inside\n")
  }

  @Test(arguments: Ground.Kind.here) func `a folder that moves takes its place among links`(kind: Ground.Kind) throws {
    let plot = try Plot.on(kind)
    for name in ["one", "two", "one/child", "one/child/grandchild"] { try Kernel.mkdir(plot(name)) }
    func links(_ names: String...) throws -> [Int] { try names.map { try Kernel.stat(plot($0)).links } }
    #expect(try links("one", "two", "one/child") == [3, 2, 3])
    try Kernel.rename(plot("one/child"), plot("two/child"))
    #expect(try links("one", "two", "two/child") == [2, 3, 3])
    #expect(try Kernel.stat(plot("two/child/..")).number == Kernel.stat(plot("two")).number)
    try Kernel.mkdir(plot("one/child"))
    try Kernel.rename(plot("one/child"), plot("two/child/grandchild"))
    #expect(try links("one", "two/child", "two/child/grandchild") == [2, 3, 2])
    let (one, inner) = (try Kernel.stat(plot("one")).number, try Kernel.stat(plot("two/child")).number)
    try Kernel.rename(plot("one"), plot("two/child"), flags: RenameFlag.exchange)
    #expect(try Kernel.stat(plot("one/..")).number == Kernel.stat(plot.path).number)
    #expect(try Kernel.stat(plot("one")).number == inner && Kernel.stat(plot("two/child")).number == one)
    #expect(try links("one", "two", "two/child") == [3, 3, 2])
  }
}
