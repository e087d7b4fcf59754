import Glibc
import Testing

/// open(2), mkdir(2) and mknod(2): what they make, and what they refuse.
@Suite struct CreationTests {
  @Test(arguments: Ground.Kind.here) func `open refuses what its manual page says`(kind: Ground.Kind) throws {
    let long = String(repeating: "n", count: 256)
    let deep = String(repeating: "d/", count: 2050)
    try Refused.all(
      on: kind,
      [
        Refused("a name that is not there", ENOENT) { try Kernel.open($0("missing"), O_RDONLY) },
        Refused("an empty name", ENOENT) { _ in try Kernel.open("", O_RDONLY) },
        Refused("a folder on the way that is not there", ENOENT) { try Kernel.open($0("no/file"), O_CREAT | O_RDWR) },
        Refused("a file on the way", ENOTDIR) { try Kernel.open($0("file/x"), O_CREAT | O_RDWR) },
        Refused("a file with a slash behind it", ENOTDIR) { try Kernel.open($0("file/"), O_RDONLY) },
        Refused("a name with a slash behind it that is to be made", EISDIR) {
          try Kernel.open($0("new/"), O_CREAT | O_RDWR)
        },
        Refused("a fifo on the way", ENOTDIR) { try Kernel.open($0("fifo/x"), O_RDONLY) },
        Refused("O_EXCL on a file", EEXIST) { try Kernel.open($0("file"), O_CREAT | O_EXCL | O_RDWR) },
        Refused("O_EXCL on a folder", EEXIST) { try Kernel.open($0("folder"), O_CREAT | O_EXCL | O_RDWR) },
        Refused("O_EXCL on a link to nothing", EEXIST) { try Kernel.open($0("dangling"), O_CREAT | O_EXCL | O_RDWR) },
        Refused("O_DIRECTORY on a file", ENOTDIR) { try Kernel.open($0("file"), O_RDONLY | O_DIRECTORY) },
        Refused("O_DIRECTORY on a link to a file", ENOTDIR) { try Kernel.open($0("to-file"), O_RDONLY | O_DIRECTORY) },
        Refused("O_NOFOLLOW on a link", ELOOP) { try Kernel.open($0("to-file"), O_RDONLY | O_NOFOLLOW) },
        Refused("a link to itself", ELOOP) { try Kernel.open($0("loop"), O_RDONLY) },
        Refused("a link to itself on the way", ELOOP) { try Kernel.open($0("loop/x"), O_RDONLY) },
        Refused("a link to nothing", ENOENT) { try Kernel.open($0("dangling"), O_RDONLY) },
        Refused("a folder for writing", EISDIR) { try Kernel.open($0("folder"), O_WRONLY) },
        Refused("a folder for both", EISDIR) { try Kernel.open($0("folder"), O_RDWR) },
        Refused("a folder with O_CREAT", EISDIR) { try Kernel.open($0("folder"), O_CREAT | O_RDONLY) },
        Refused("a folder with O_TRUNC", EISDIR) { try Kernel.open($0("folder"), O_TRUNC | O_WRONLY) },
        Refused("a fifo without a reader", ENXIO) { try Kernel.open($0("fifo"), O_WRONLY | O_NONBLOCK) },
        Refused("a name of 256 bytes", ENAMETOOLONG) { try Kernel.open($0(long), O_RDONLY) },
        Refused("a new name of 256 bytes", ENAMETOOLONG) { try Kernel.open($0(long), O_CREAT | O_RDWR) },
        Refused("a path of more than 4096 bytes", ENAMETOOLONG) { try Kernel.open($0(deep), O_RDONLY) },
      ])
  }
  @Test(arguments: Ground.Kind.here) func `mkdir and mknod refuse what their manual pages say`(kind: Ground.Kind) throws
  {
    let long = String(repeating: "n", count: 256)
    let makers: [(String, (String) throws -> Void)] = [
      ("mkdir", { try Kernel.mkdir($0) }),
      ("mknod of a fifo", { try Kernel.makeNode($0, S_IFIFO) }),
      ("mknod of a file", { try Kernel.makeNode($0, S_IFREG) }),
      ("mknod of a socket", { try Kernel.makeNode($0, S_IFSOCK) }),
      ("symlink", { try Kernel.symlink("x", at: $0) }),
    ]
    for (name, make) in makers {
      var rows = ["file", "folder", "fifo", "to-file", "dangling", "loop"].map { taken in
        Refused("\(name) where \(taken) is", EEXIST) { try make($0(taken)) }
      }
      rows += [
        Refused("\(name) in a folder that is not there", ENOENT) { try make($0("no/new")) },
        Refused("\(name) in a file", ENOTDIR) { try make($0("file/new")) },
        Refused("\(name) below a link to itself", ELOOP) { try make($0("loop/new")) },
        Refused("\(name) with a name of 256 bytes", ENAMETOOLONG) { try make($0(long)) },
        Refused("\(name) without a name", ENOENT) { _ in try make("") },
        Refused("\(name) as .", EEXIST) { try make($0("folder/.")) },
        Refused("\(name) as ..", EEXIST) { try make($0("folder/..")) },
      ]
      try Refused.all(on: kind, rows)
    }
  }

  @Test(arguments: Ground.Kind.here) func `what is made has the mode that was asked for, less the umask`(
    kind: Ground.Kind
  ) throws {
    let plot = try Plot.on(kind)
    for mask: mode_t in [0, 0o022, 0o077, 0o777] {
      let folder = plot("\(mask)")
      try Kernel.mkdir(folder)
      for mode: mode_t in [0o000, 0o400, 0o644, 0o755, 0o777, 0o1777, 0o4755, 0o2750] {
        try onOwnThread {
          umask(mask)
          try Kernel.open("\(folder)/file-\(mode)", O_CREAT | O_EXCL | O_RDWR, mode: mode).write("x")
          try Kernel.makeNode("\(folder)/fifo-\(mode)", S_IFIFO, mode: mode)
          try Kernel.makeNode("\(folder)/node-\(mode)", S_IFREG, mode: mode)
          try Kernel.makeNode("\(folder)/socket-\(mode)", S_IFSOCK, mode: mode)
          try Kernel.mkdir("\(folder)/folder-\(mode)", mode: mode & 0o1777)
        }
        let wanted = mode & ~mask
        // Writing takes a program's borrowed rights away from a file, even root's.
        let written = try Kernel.stat("\(folder)/file-\(mode)")
        #expect(written.permissions & 0o1777 == wanted & 0o1777, "file, \(mode) under \(mask)")
        for name in ["fifo", "node", "socket"] {
          #expect(try Kernel.stat("\(folder)/\(name)-\(mode)").permissions == wanted, "\(name), \(mode) under \(mask)")
        }
        let made = try Kernel.stat("\(folder)/folder-\(mode)").permissions
        #expect(made == wanted & 0o1777, "folder, \(mode) under \(mask)")
      }
    }
  }

  @Test(arguments: Ground.Kind.here) func `each kind of node is made as what it is`(kind: Ground.Kind) throws {
    let plot = try Plot.on(kind)
    try plot.furnish()
    try Kernel.makeNode(plot("socket"), S_IFSOCK)
    let kinds = [
      "file": S_IFREG, "empty": S_IFREG, "folder": S_IFDIR, "to-file": S_IFLNK, "dangling": S_IFLNK, "fifo": S_IFIFO,
      "socket": S_IFSOCK,
    ]
    let listing = try Kernel.listing(plot.path)
    for (name, kind) in kinds {
      let stat = try Kernel.stat(plot(name))
      #expect(stat.kind == kind, "\(name)")
      #expect(stat.user == geteuid() && stat.group == getegid(), "\(name)")
      #expect(stat.links == (kind == S_IFDIR ? 2 : name == "file" ? 2 : 1), "\(name)")
      let listed = try #require(listing.first { $0.name == name })
      #expect(listed.kind == kind && listed.number == stat.number, "\(name)")
    }
    #expect(try Kernel.stat(plot("to-file")).size == 4)
    #expect(try Kernel.stat(plot("file")).size == 8)
    #expect(try Kernel.stat(plot("fifo")).size == 0)
    #expect(try Kernel.stat(plot("empty")).blocks == 0)
  }

  @Test(arguments: Ground.Kind.here) func `a device is no part of a vault`(kind: Ground.Kind) throws {
    let plot = try Plot.on(kind)
    func make() -> CallError? {
      outcome { try Kernel.makeNode(plot("device"), S_IFCHR, device: 0x103) }
    }
    if plot.isMount { #expect(make() == CallError(EPERM)) }
    guard Person.canBeAnother else { return }
    try Kernel.chmod(plot.path, 0o777)
    #expect(try onOwnThread(as: .one) { make() } == CallError(EPERM))
    if plot.isMount { #expect(try Kernel.names(plot.path) == []) }
  }

  @Test(arguments: Ground.Kind.here) func `names are bytes of any kind, up to 255`(kind: Ground.Kind) throws {
    let plot = try Plot.on(kind)
    var names: [[UInt8]] = (1...255).filter { $0 != 0x2f && $0 != 0x2e }.map { [UInt8($0)] }
    names += [
      Array("...".utf8), Array(".hidden".utf8), Array(" ".utf8) + Array(" ".utf8), Array("ü".utf8),
      Array("u\u{308}".utf8),
      Array("A-a".utf8), Array("a-A".utf8), [0xff, 0xfe, 0x80],
      [UInt8](repeating: 0x6e, count: 255), [UInt8](repeating: 0xff, count: 255),
    ]
    for (number, name) in names.enumerated() {
      let path = (Array(plot.path.utf8) + [0x2f] + name + [0]).map { CChar(bitPattern: $0) }
      try CallError.check(number.isMultiple(of: 2) ? mkdir(path, 0o755) : mknod(path, S_IFREG | 0o644, 0))
    }
    let listed = try Kernel.listing(plot.path).filter { !$0.isDots }.map(\.bytes)
    #expect(listed.count == names.count && Set(listed) == Set(names))
    for name in names {
      let path = (Array(plot.path.utf8) + [0x2f] + name + [0]).map { CChar(bitPattern: $0) }
      try CallError.check(remove(path))
    }
    #expect(try Kernel.names(plot.path) == [])
  }

  @Test(arguments: Ground.Kind.here) func `a file without a name gets one later or goes`(kind: Ground.Kind) throws {
    let plot = try Plot.on(kind)
    func make(_ flags: CInt = 0) throws -> Handle {
      try Handle(plot.path, GNU.unnamed | O_RDWR | flags, mode: 0o640)
    }
    let opened = outcome { _ = try make() }
    // Kernels before 6.2 do not ask a file system in a program for one.
    if kind == .mount, opened == CallError(EOPNOTSUPP), !GNU.kernelIsAtLeast(6, 2) { return }
    try #require(opened == nil)
    for count in [0, 100, 300_000] {
      let file = try make()
      try file.writeAll(noise(count))
      #expect(try file.stat().links == 0 && file.stat().size == count && file.stat().permissions == 0o640)
      #expect(try Kernel.names(plot.path) == [])
      try Kernel.link("/proc/self/fd/\(file.number)", plot("named"), following: true)
      try Kernel.link("/proc/self/fd/\(file.number)", plot("twice"), following: true)
      #expect(try file.stat().links == 2)
      #expect(try Handle(plot("named"), O_RDONLY).readAll() == noise(count))
      try Kernel.unlink(plot("named"))
      try Kernel.unlink(plot("twice"))
      // Its last name went, so it gets no other.
      #expect(
        outcome { try Kernel.link("/proc/self/fd/\(file.number)", plot("back"), following: true) } == CallError(ENOENT))
    }
    // One that nobody has open any more can be opened and named as long as it is held.
    for count in [0, 100, 300_000] {
      func hold() throws -> Handle {
        let file = try make()
        try file.writeAll(noise(count))
        return try Handle("/proc/self/fd/\(file.number)", GNU.pathOnly)
      }
      let held = try hold()
      #expect(try held.stat().links == 0 && held.stat().size == count)
      #expect(try Handle("/proc/self/fd/\(held.number)", O_RDONLY).readAll() == noise(count))
      try Kernel.link("/proc/self/fd/\(held.number)", plot("named"), following: true)
      #expect(try held.stat().links == 1 && Kernel.content(plot("named")) == noise(count))
      try Kernel.unlink(plot("named"))
    }
    // O_EXCL: it shall never get a name.
    let file = try make(O_EXCL)
    #expect(
      outcome { try Kernel.link("/proc/self/fd/\(file.number)", plot("named"), following: true) } == CallError(ENOENT))
    #expect(try Kernel.names(plot.path) == [])
    #expect(outcome { try Kernel.open(plot("missing"), GNU.unnamed | O_RDWR) } == CallError(ENOENT))
  }
}
