import Glibc
import Testing

/// chmod(2), chown(2) and what they are refused.
@Suite struct ModeTests {
  @Test(arguments: Ground.Kind.here) func `all twelve bits are kept, for every kind of node`(kind: Ground.Kind) throws {
    let plot = try Plot.on(kind)
    try plot.furnish()
    try Kernel.makeNode(plot("socket"), S_IFSOCK)
    for name in ["file", "folder", "fifo", "socket"] {
      let before = try Kernel.stat(plot(name))
      for mode: mode_t in [0, 0o7777, 0o4000, 0o2000, 0o1000, 0o421, 0o644, 0o1755] {
        try Kernel.chmod(plot(name), mode)
        let stat = try Kernel.stat(plot(name))
        #expect(stat.permissions == mode && stat.kind == before.kind && stat.number == before.number, "\(name)")
      }
    }
    try Kernel.chmod(plot("to-file"), 0o612)
    #expect(try Kernel.stat(plot("again")).permissions == 0o612)
    #expect(try Kernel.stat(plot("to-file")).permissions == 0o777)
    let file = try Handle(plot("file"), O_RDONLY)
    try file.chmod(0o600)
    #expect(try Kernel.stat(plot("file")).permissions == 0o600 && file.stat().permissions == 0o600)
  }

  @Test(arguments: Ground.Kind.here) func `chmod and chown refuse what their manual pages say`(
    kind: Ground.Kind
  ) throws {
    var rows = [
      Refused("chmod of a link to nothing", ENOENT) { try Kernel.chmod($0("dangling"), 0o644) },
      Refused("chmod of a path handle", EBADF) { try Kernel.open($0("file"), GNU.pathOnly).chmod(0o600) },
      Refused("chown of a path handle", EBADF) { try Kernel.open($0("file"), GNU.pathOnly).chown(user: 1) },
    ]
    let changes: [(String, (String) throws -> Void)] = [
      ("chmod", { try Kernel.chmod($0, 0o600) }), ("chown", { try Kernel.chown($0, user: 1) }),
    ]
    for (name, change) in changes {
      rows += [
        Refused("\(name) of nothing", ENOENT) { try change($0("missing")) },
        Refused("\(name) below a file", ENOTDIR) { try change($0("file/x")) },
        Refused("\(name) below a loop", ELOOP) { try change($0("loop/x")) },
        Refused("\(name) of too long a name", ENAMETOOLONG) { try change($0(String(repeating: "n", count: 256))) },
      ]
    }
    try Refused.all(on: kind, rows)
  }

  @Test(.enabled(if: Person.canBeAnother, Person.needsRoot), arguments: Ground.Kind.here)
  func `an owner is given by number, and -1 leaves what is`(kind: Ground.Kind) throws {
    let plot = try Plot.on(kind)
    try plot.furnish()
    for name in ["file", "folder", "to-file", "dangling", "fifo"] {
      for (user, group, result) in [
        (1, 2, (1, 2)), (-1, 3, (1, 3)), (4, -1, (4, 3)), (-1, -1, (4, 3)),
        (65_534, 4_000_000_000, (65_534, 4_000_000_000)),
        (0, 0, (0, 0)),
      ] {
        try Kernel.chown(plot(name), user: user, group: group)
        let stat = try Kernel.stat(plot(name))
        #expect(stat.user == UInt32(result.0) && stat.group == UInt32(result.1), "\(name) to \(user), \(group)")
      }
    }
    try Kernel.open(plot("file"), O_RDONLY).chown(user: 7, group: 8)
    #expect(try Kernel.stat(plot("again")).user == 7 && Kernel.stat(plot("again")).group == 8)
  }

  @Test(.enabled(if: Person.canBeAnother, Person.needsRoot), arguments: Ground.Kind.here)
  func `a program's borrowed rights go with a new owner and with a change by somebody else`(kind: Ground.Kind) throws {
    let plot = try Plot.on(kind)
    func fresh(_ mode: mode_t) throws -> String {
      let path = plot("file")
      if try Kernel.exists(path) { try Kernel.unlink(path) }
      try Kernel.makeFile(path, "#!/bin/true\n")
      try Kernel.chown(path, user: 1001, group: 2001)
      try Kernel.chmod(path, mode)
      return path
    }
    let changes: [(name: String, change: (String) throws -> Void)] = [
      ("write", { try Kernel.open($0, O_WRONLY).write("x") }),
      ("write to what may be read", { try Kernel.open($0, O_RDWR).write("x") }),
      ("truncate", { try Kernel.truncate($0, to: 3) }),
      ("ftruncate", { try Kernel.open($0, O_RDWR).truncate(to: 3) }),
      ("O_TRUNC", { try Kernel.open($0, O_WRONLY | O_TRUNC) }),
      ("fallocate", { try Kernel.open($0, O_RDWR).change(0, 0, 5000) }),
    ]
    for mode: mode_t in [0o4777, 0o6777, 0o2777] {
      for (name, change) in changes {
        for person in [Person.stranger, .humbleRoot] {
          let path = try fresh(mode)
          try onOwnThread(as: person) { try change(path) }
          #expect(try Kernel.stat(path).permissions == 0o777, "\(name) by \(person), \(mode)")
        }
        let path = try fresh(mode)
        try change(path)
        #expect(try Kernel.stat(path).permissions == mode, "\(name) by root, \(mode)")
      }
      // It is refused, or nothing comes of it.
      let path = try fresh(mode)
      try? onOwnThread(as: .stranger) { try Kernel.chown(path) }
      #expect(try Kernel.stat(path).permissions == mode, "chown by a stranger, \(mode)")
      try onOwnThread(as: .one) { try Kernel.chown(path) }
      #expect(try Kernel.stat(path).permissions == 0o777, "chown by the owner, \(mode)")
      for user in [1002, -1] {
        let path = try fresh(mode)
        try Kernel.chown(path, user: user, group: user)
        #expect(try Kernel.stat(path).permissions == 0o777, "chown to \(user), \(mode)")
      }
    }
    // Nobody can run these.
    for (kind, user) in [(S_IFIFO, 1002), (S_IFSOCK, 1002), (S_IFIFO, -1)] {
      if try Kernel.exists(plot("node")) { try Kernel.unlink(plot("node")) }
      try Kernel.makeNode(plot("node"), kind)
      try Kernel.chmod(plot("node"), 0o6777)
      try Kernel.chown(plot("node"), user: user)
      #expect(try Kernel.stat(plot("node")).permissions == 0o777, "\(kind)")
    }
    // Without the group's right to execute, its bit stays where somebody of the group changes the file. (Kernels before 6.2 leave it
    // to everybody.)
    if GNU.kernelIsAtLeast(6, 2) {
      for (name, change) in changes {
        for (person, stays) in [(Person.stranger, false), (.humbleRoot, false), (.fellow, true), (.one, true)] {
          // The kernel does not tell a file system in a program that this root lacks the right.
          if kind == .mount, person == .humbleRoot, name == "fallocate" { continue }
          let path = try fresh(0o2767)
          try onOwnThread(as: person) { try change(path) }
          let expected: mode_t = stays ? 0o2767 : 0o767
          #expect(try Kernel.stat(path).permissions == expected, "\(name) by \(person), without the group's x")
        }
      }
    }
    // The group's bit without its right to execute is no borrowed right. A folder keeps what it has.
    let path = try fresh(0o2767)
    try Kernel.chown(path, user: 1002)
    #expect(try Kernel.stat(path).permissions == 0o2767)
    try Kernel.mkdir(plot("folder"))
    try Kernel.chmod(plot("folder"), 0o6777)
    try Kernel.chown(plot("folder"), user: 1002, group: 2002)
    try Kernel.chown(plot("folder"))
    #expect(try Kernel.stat(plot("folder")).permissions == 0o6777)
  }
}
