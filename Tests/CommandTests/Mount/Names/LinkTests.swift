import Glibc
import Testing

/// link(2), symlink(2) and readlink(2).
@Suite struct MountLinkTests {
  @Test(arguments: Ground.Kind.here) func `link refuses what its manual page says`(kind: Ground.Kind) throws {
    let long = String(repeating: "n", count: 256)
    func row(_ what: String, _ error: CInt, _ old: String, _ new: String, following: Bool = false) -> Refused {
      Refused(what, error) { try Kernel.link($0(old), $0(new), following: following) }
    }
    try Refused.all(
      on: kind,
      [
        row("nothing", ENOENT, "missing", "new"),
        row("a folder", EPERM, "folder", "new"),
        row("a link to a folder, followed", EPERM, "to-folder", "new", following: true),
        row("a link to nothing, followed", ENOENT, "dangling", "new", following: true),
        row("a link to itself, followed", ELOOP, "loop", "new", following: true),
        row("to a taken name", EEXIST, "file", "empty"),
        row("to its own name", EEXIST, "file", "file"),
        row("to a folder's name", EEXIST, "file", "folder"),
        row("to the name of a link to nothing", EEXIST, "file", "dangling"),
        row("into a folder that is not there", ENOENT, "file", "no/new"),
        row("into a file", ENOTDIR, "empty", "file/new"),
        row("from below a file", ENOTDIR, "file/x", "new"),
        row("to a name with a slash behind it", ENOENT, "file", "new/"),
        row("to a name of 256 bytes", ENAMETOOLONG, "file", long),
        Refused("from another file system", EXDEV) { try Kernel.link("/proc/version", $0("new")) },
        Refused("to another file system", EXDEV) { try Kernel.link($0("file"), "/dev/coffer-test-new") },
      ])
  }

  @Test(arguments: Ground.Kind.here) func `every name of a file is the file`(kind: Ground.Kind) throws {
    let plot = try Plot.on(kind)
    try plot.furnish()
    for (old, new, following) in [
      ("file", "folder/file", false), ("to-file", "followed", true), ("to-file", "link", false),
      ("fifo", "folder/fifo", false), ("dangling", "folder/dangling", false),
    ] {
      try Kernel.link(plot(old), plot(new), following: following)
    }
    #expect(try Kernel.stat(plot("link")).kind == S_IFLNK && Kernel.stat(plot("followed")).kind == S_IFREG)
    for (names, links) in [
      (["file", "again", "folder/file", "followed"], 4), (["to-file", "link"], 2), (["fifo", "folder/fifo"], 2),
      (["dangling", "folder/dangling"], 2),
    ] {
      let stats = try names.map { try Kernel.stat(plot($0)) }
      #expect(Set(stats).count == 1 && stats[0].links == links, "\(names)")
    }
    // A change through one is seen through the others at once: content, size, mode, owner, times, attributes.
    try Handle(plot("folder/file"), O_WRONLY | O_APPEND).writeAll(noise(40_000))
    try Kernel.chmod(plot("followed"), 0o751)
    try Kernel.setTimes(plot("again"), modified: Moment(1_000_000, 7))
    try Kernel.setAttribute(plot("file"), "user.mark", "1")
    for name in ["file", "again", "folder/file", "followed"] {
      let stat = try Kernel.stat(plot(name))
      #expect(stat.size == 40_008 && stat.permissions == 0o751 && stat.modified == Moment(1_000_000, 7), "\(name)")
      #expect(try Kernel.content(plot(name)) == Array("content\n".utf8) + noise(40_000), "\(name)")
      #expect(try Kernel.attributes(plot(name)) == ["user.mark"], "\(name)")
    }
    for (left, name) in ["again", "followed", "file"].enumerated() {
      try Kernel.unlink(plot(name))
      #expect(try Kernel.stat(plot("folder/file")).links == 3 - left)
    }
    #expect(try Kernel.stat(plot("folder/file")).size == 40_008)
  }

  @Test(arguments: Ground.Kind.here) func `a symbolic link holds its text, and is followed as text`(
    kind: Ground.Kind
  ) throws {
    let plot = try Plot.on(kind)
    try plot.furnish()
    let targets = [
      "x", "../..", "/", "/absolute/and/missing", "with space", "ünïcode", "a//b/./c/",
      String(repeating: "t", count: 255),
      String(repeating: "t/", count: 2047),
    ]
    for (number, target) in targets.enumerated() {
      try Kernel.symlink(target, at: plot("link-\(number)"))
      #expect(try Kernel.readLink(plot("link-\(number)")) == target)
      let stat = try Kernel.stat(plot("link-\(number)"))
      #expect(stat.size == target.utf8.count && stat.permissions == 0o777 && stat.links == 1)
    }
    // A buffer that is too small gets what fits.
    #expect(try Kernel.readLink(plot("link-3"), limit: 5) == "/abso")
    try Kernel.makeFile(plot("to-folder/through"), "through")
    #expect(try Kernel.text(plot("folder/through")) == "through")
    try Kernel.open(plot("dangling"), O_CREAT | O_WRONLY).write("made")
    #expect(try Kernel.text(plot("nowhere")) == "made")
    // Forty on the way are followed, and no more.
    try Kernel.symlink("file", at: plot("chain-1"))
    for number in 2...41 { try Kernel.symlink("chain-\(number - 1)", at: plot("chain-\(number)")) }
    #expect(try Kernel.text(plot("chain-40")) == "content\n")
    #expect(outcome { _ = try Kernel.text(plot("chain-41")) } == CallError(ELOOP))
  }

  @Test(arguments: Ground.Kind.here) func `symlink and readlink refuse what their manual pages say`(
    kind: Ground.Kind
  ) throws {
    try Refused.all(
      on: kind,
      [
        Refused("a target of 4096 bytes", ENAMETOOLONG) {
          try Kernel.symlink(String(repeating: "t", count: 4096), at: $0("new"))
        },
        Refused("an empty target", ENOENT) { try Kernel.symlink("", at: $0("new")) },
        Refused("to read a file as a link", EINVAL) { _ = try Kernel.readLink($0("file")) },
        Refused("to read a folder as a link", EINVAL) { _ = try Kernel.readLink($0("folder")) },
        Refused("to read a fifo as a link", EINVAL) { _ = try Kernel.readLink($0("fifo")) },
        Refused("to read nothing as a link", ENOENT) { _ = try Kernel.readLink($0("missing")) },
        Refused("to read below a file", ENOTDIR) { _ = try Kernel.readLink($0("file/x")) },
        Refused("to read below a loop", ELOOP) { _ = try Kernel.readLink($0("loop/x")) },
      ])
  }
}
