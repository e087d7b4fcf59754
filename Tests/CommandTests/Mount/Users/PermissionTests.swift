import Glibc
import Testing

/// Who may do what: the owner, a member of the group, and everybody else.
@Suite(.enabled(if: Person.canBeAnother, Person.needsRoot)) struct PermissionTests {
  /// Every right of each class, while the other classes have the opposite.
  private static let modes: [(mode: mode_t, rights: [mode_t])] = (0..<3).flatMap { place in
    (0..<8).map { bits in
      let rights = (0..<3).map { $0 == place ? mode_t(bits) : mode_t(7 - bits) }
      return (rights[0] << 6 | rights[1] << 3 | rights[2], rights)
    }
  }

  @Test(arguments: Ground.Kind.here) func `a file is opened by whom its mode lets`(kind: Ground.Kind) throws {
    let plot = try Plot.on(kind)
    let path = plot("file")
    try Kernel.makeFile(path, "content")
    try Kernel.chown(path, user: 1001, group: 2001)
    for (mode, rights) in Self.modes {
      try Kernel.chmod(path, mode)
      for (person, rights) in zip(Person.everyone, rights) {
        let results = try onOwnThread(as: person) {
          [(O_RDONLY, 4), (O_WRONLY, 2), (O_RDWR, 6), (O_WRONLY | O_APPEND, 2)].map { flags, needed in
            (outcome { try Kernel.open(path, flags) }, mode_t(needed))
          }
            + [(4, R_OK), (2, W_OK), (1, X_OK), (0, F_OK)].map { needed, wanted in
              (outcome { try CallError.check(faccessat(GNU.here, path, wanted, GNU.effective)) }, mode_t(needed))
            }
        }
        for (number, (error, needed)) in results.enumerated() {
          #expect(
            error == (rights & needed == needed ? nil : CallError(EACCES)),
            "\(person), mode \(String(mode, radix: 8)), call \(number)")
        }
      }
    }
  }

  @Test(arguments: Ground.Kind.here) func `a folder is listed, searched and changed by whom its mode lets`(
    kind: Ground.Kind
  ) throws {
    let plot = try Plot.on(kind)
    let path = plot("folder")
    try Kernel.mkdir(path)
    try Kernel.makeFile(path + "/file", "content")
    try Kernel.chmod(path + "/file", 0o666)
    try Kernel.chown(path, user: 1001, group: 2001)
    let calls: [(String, mode_t, () throws -> Void)] = [
      ("list", 4, { _ = try Kernel.names(path) }),
      ("stat within", 1, { _ = try Kernel.stat(path + "/file") }),
      ("open within", 1, { try Kernel.open(path + "/file", O_RDWR) }),
      (
        "make and unlink", 3,
        {
          try Kernel.open(path + "/new", O_CREAT | O_EXCL | O_RDWR)
          try Kernel.unlink(path + "/new")
        }
      ),
      (
        "mkdir, rename and rmdir", 3,
        {
          try Kernel.mkdir(path + "/new")
          try Kernel.rename(path + "/new", path + "/newer")
          try Kernel.rmdir(path + "/newer")
        }
      ),
      (
        "symlink and mknod", 3,
        {
          try Kernel.symlink("x", at: path + "/link")
          try Kernel.makeNode(path + "/fifo", S_IFIFO)
          for name in ["link", "fifo"] { try Kernel.unlink(path + "/" + name) }
        }
      ),
    ]
    for (mode, rights) in Self.modes {
      try Kernel.chmod(path, mode)
      for (person, rights) in zip(Person.everyone, rights) {
        let errors = try onOwnThread(as: person) { calls.map { call in outcome(call.2) } }
        for (call, error) in zip(calls, errors) {
          #expect(
            error == (rights & call.1 == call.1 ? nil : CallError(EACCES)),
            "\(person), mode \(String(mode, radix: 8)), \(call.0)")
        }
      }
    }
    #expect(try Kernel.names(path) == ["file"])
  }

  @Test(arguments: Ground.Kind.here) func `attributes are their owner's to change`(kind: Ground.Kind) throws {
    // Everybody may write the content of `shared`, nobody but its owner that of `own`, and everybody reads both.
    let given: (Plot) throws -> Void = { plot in
      try Kernel.chmod(plot.path, 0o777)
      for (name, mode) in [("shared", mode_t(0o666)), ("own", 0o644), ("hidden", 0o600)] {
        try Kernel.makeFile(plot(name), "content")
        try Kernel.chown(plot(name), user: 1001, group: 2001)
        try Kernel.chmod(plot(name), mode)
        try Kernel.setAttribute(plot(name), "user.there", "value")
      }
    }
    func row(
      _ what: String, _ error: CInt, as person: Person, _ call: @escaping (Plot) throws -> Void
    ) -> Refused {
      Refused("\(what), by \(person)", error, as: person, given: given, call)
    }
    var rows: [Refused] = []
    for person in [Person.fellow, .stranger] {
      rows += [
        row("chmod", EPERM, as: person) { try Kernel.chmod($0("shared"), 0o600) },
        row("fchmod", EPERM, as: person) { try Kernel.open($0("shared"), O_RDWR).chmod(0o600) },
        row("chown to oneself", EPERM, as: person) { try Kernel.chown($0("shared"), user: Int(person.user)) },
        row("chown of the group", EPERM, as: person) { try Kernel.chown($0("shared"), group: Int(person.group)) },
        row("given times", EPERM, as: person) { try Kernel.setTimes($0("shared"), modified: Moment(1, 2)) },
        row("half of the present", EPERM, as: person) { try Kernel.setTimes($0("shared"), modified: .now) },
        row("the present, without a right to write", EACCES, as: person) { try Kernel.touch($0("own")) },
        row("truncate without a right to write", EACCES, as: person) { try Kernel.truncate($0("own"), to: 0) },
        row("O_TRUNC without a right to write", EACCES, as: person) { try Kernel.open($0("own"), O_RDONLY | O_TRUNC) },
        row("setxattr without a right to write", EACCES, as: person) {
          try Kernel.setAttribute($0("own"), "user.a", "x")
        },
        row("removexattr without a right to write", EACCES, as: person) {
          try Kernel.removeAttribute($0("own"), "user.there")
        },
        row("getxattr without a right to read", EACCES, as: person) {
          _ = try Kernel.attribute($0("hidden"), "user.there")
        },
        row("O_NOATIME", EPERM, as: person) { try Kernel.open($0("shared"), O_RDONLY | GNU.noAccessTime) },
      ]
    }
    rows += [
      row("giving a file away", EPERM, as: .one) { try Kernel.chown($0("own"), user: 1002) },
      row("a group that one is not in", EPERM, as: .one) { try Kernel.chown($0("own"), group: 2003) },
    ]
    try Refused.all(on: kind, rows)

    // And what they may.
    let plot = try Plot.on(kind)
    try given(plot)
    try onOwnThread(as: .stranger) {
      try Kernel.touch(plot("shared"))
      try Kernel.setAttribute(plot("shared"), "user.a", "x")
      try Kernel.truncate(plot("shared"), to: 3)
    }
    try onOwnThread(as: .one) {
      try Kernel.chmod(plot("own"), 0o640)
      try Kernel.chown(plot("own"), user: 1001, group: 2001)
      try Kernel.setTimes(plot("own"), accessed: Moment(1, 2), modified: Moment(3, 4))
    }
    try Kernel.chown(plot("hidden"), user: 1002)
    try onOwnThread(as: .fellow) { try Kernel.chown(plot("hidden"), group: 2002) }
    #expect(try Kernel.stat(plot("hidden")).group == 2002 && Kernel.stat(plot("own")).modified == Moment(3, 4))
  }

  @Test(arguments: Ground.Kind.here) func `what is made belongs to who made it, or to the folder's group`(
    kind: Ground.Kind
  ) throws {
    let plot = try Plot.on(kind)
    try Kernel.mkdir(plot("plain"))
    try Kernel.mkdir(plot("group"))
    try Kernel.chown(plot("group"), group: 2001)
    try Kernel.chmod(plot("plain"), 0o777)
    try Kernel.chmod(plot("group"), 0o2777)
    for person in Person.everyone {
      for folder in ["plain", "group"] {
        let path = plot("\(folder)/\(person)")
        try onOwnThread(as: person) {
          try Kernel.mkdir(path)
          try Kernel.makeFile(path + "/file")
          try Kernel.symlink("x", at: path + "/link")
          try Kernel.makeNode(path + "/fifo", S_IFIFO)
          try Kernel.open(path + "/borrowed", O_CREAT | O_WRONLY, mode: 0o2755)
        }
        let group = folder == "plain" ? person.group : 2001
        for name in ["", "/file", "/link", "/fifo", "/borrowed"] {
          let stat = try Kernel.stat(path + name)
          #expect(stat.user == person.user && stat.group == group, "\(person) in \(folder), \(name)")
        }
        #expect(try Kernel.stat(path).permissions == (folder == "plain" ? 0o755 : 0o2755), "\(person) in \(folder)")
        // Nobody makes a program of a group that they are not in.
        let isMember = folder == "plain" || person != .stranger
        #expect(
          try Kernel.stat(path + "/borrowed").permissions == (isMember ? 0o2755 : 0o755), "\(person) in \(folder)")
      }
    }
    // Nor by chmod.
    try Kernel.makeFile(plot("program"))
    try Kernel.chown(plot("program"), user: 1003, group: 2001)
    try onOwnThread(as: .stranger) { try Kernel.chmod(plot("program"), 0o2755) }
    #expect(try Kernel.stat(plot("program")).permissions == 0o755)
    try Kernel.chown(plot("program"), user: 1002)
    try onOwnThread(as: .fellow) { try Kernel.chmod(plot("program"), 0o2755) }
    #expect(try Kernel.stat(plot("program")).permissions == 0o2755)
  }

  @Test(arguments: Ground.Kind.here) func `in a sticky folder each removes only what is theirs`(kind: Ground.Kind)
    throws
  {
    let given: (Plot) throws -> Void = { plot in
      try Kernel.mkdir(plot("sticky"))
      try Kernel.makeFile(plot("sticky/file"), "content")
      try Kernel.makeFile(plot("sticky/mine"), "mine")
      try Kernel.mkdir(plot("sticky/folder"))
      try Kernel.chmod(plot.path, 0o777)
      try Kernel.chmod(plot("sticky"), 0o1777)
      for name in ["file", "folder"] { try Kernel.chown(plot("sticky/" + name), user: 1001, group: 2001) }
      try Kernel.chown(plot("sticky/mine"), user: 1002)
      try Kernel.chown(plot("sticky"), user: 1003)
    }
    func row(_ what: String, _ call: @escaping (Plot) throws -> Void) -> Refused {
      Refused(what, EPERM, as: .fellow, given: given, call)
    }
    try Refused.all(
      on: kind,
      [
        row("unlink") { try Kernel.unlink($0("sticky/file")) },
        row("rmdir") { try Kernel.rmdir($0("sticky/folder")) },
        row("rename within") { try Kernel.rename($0("sticky/file"), $0("sticky/new")) },
        row("rename away") { try Kernel.rename($0("sticky/file"), $0("new")) },
        row("rename over") { try Kernel.rename($0("sticky/mine"), $0("sticky/file")) },
        row("exchange") {
          try Kernel.rename($0("sticky/mine"), $0("sticky/file"), flags: RenameFlag.exchange)
        },
      ])
    // The file's owner, the folder's owner and root may.
    for person in [Person.one, .stranger, nil] {
      let plot = try Plot.on(kind)
      try given(plot)
      try onOwnThread(as: person) {
        try Kernel.unlink(plot("sticky/file"))
        try Kernel.rmdir(plot("sticky/folder"))
      }
      #expect(try Kernel.names(plot("sticky")) == ["mine"])
    }
  }

  @Test(arguments: Ground.Kind.here) func `names change where the folders may be written, whosever the node is`(
    kind: Ground.Kind
  ) throws {
    let given: (Plot) throws -> Void = { plot in
      try Kernel.mkdir(plot("open"))
      try Kernel.mkdir(plot("closed"))
      try Kernel.chmod(plot("open"), 0o777)
      for place in ["open", "closed"] {
        try Kernel.makeFile(plot("\(place)/file"), "content")
        try Kernel.mkdir(plot("\(place)/folder"))
      }
    }
    func row(_ what: String, _ error: CInt, _ call: @escaping (Plot) throws -> Void) -> Refused {
      Refused(what, error, as: .stranger, given: given, call)
    }
    try Refused.all(
      on: kind,
      [
        row("unlink", EACCES) { try Kernel.unlink($0("closed/file")) },
        row("rmdir", EACCES) { try Kernel.rmdir($0("closed/folder")) },
        row("mkdir", EACCES) { try Kernel.mkdir($0("closed/new")) },
        row("mkdir where there is something", EEXIST) { try Kernel.mkdir($0("closed/file")) },
        row("creating", EACCES) { try Kernel.open($0("closed/new"), O_CREAT | O_WRONLY) },
        row("symlink", EACCES) { try Kernel.symlink("x", at: $0("closed/new")) },
        row("mknod", EACCES) { try Kernel.makeNode($0("closed/new"), S_IFIFO) },
        row("rename out of", EACCES) { try Kernel.rename($0("closed/file"), $0("open/new")) },
        row("rename into", EACCES) { try Kernel.rename($0("open/file"), $0("closed/new")) },
        row("rename over", EACCES) { try Kernel.rename($0("open/file"), $0("closed/file")) },
        row("exchange", EACCES) {
          try Kernel.rename($0("open/file"), $0("closed/file"), flags: RenameFlag.exchange)
        },
      ])
    let plot = try Plot.on(kind)
    try given(plot)
    try onOwnThread(as: .stranger) {
      try Kernel.rename(plot("open/folder"), plot("open/renamed"))
      try Kernel.mkdir(plot("open/mine"))
    }
    // A folder that gets another one above it is changed itself.
    let move = try onOwnThread(as: .stranger) {
      outcome { try Kernel.rename(plot("open/renamed"), plot("open/mine/folder")) }
    }
    #expect(move == CallError(EACCES))
    try onOwnThread(as: .stranger) {
      try Kernel.rename(plot("open/file"), plot("open/mine/file"))
      try Kernel.unlink(plot("open/mine/file"))
      try Kernel.rmdir(plot("open/renamed"))
    }
    #expect(try Kernel.names(plot("open")) == ["mine"])
  }
}
