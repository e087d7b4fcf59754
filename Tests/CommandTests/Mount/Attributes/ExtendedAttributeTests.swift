import Glibc
import Testing

/// setxattr(2) and its kin, in the name space of users.
@Suite struct ExtendedAttributeTests {
  @Test(arguments: Ground.Kind.here) func `attributes are set, read, listed and removed`(kind: Ground.Kind) throws {
    let plot = try Plot.on(kind)
    try plot.furnish()
    for name in ["file", "folder"] {
      let path = plot(name)
      #expect(try Kernel.attributes(path) == [])
      try Kernel.setAttribute(path, "user.one", [])
      #expect(throws: CallError(EINVAL)) { try Kernel.setAttribute(path, "user.", []) }
      try Kernel.setAttribute(path, "user.two", [0, 0xff, 0])
      try Kernel.setAttribute(path, "user.ünïcode", noise(500), flags: AttributeFlag.create)
      try Kernel.setAttribute(path, "user.two", "longer than before", flags: AttributeFlag.replace)
      try Kernel.setAttribute(path, "user.one", "now with a value")
      #expect(try Kernel.attributes(path) == ["user.one", "user.two", "user.ünïcode"])
      #expect(try Kernel.attribute(path, "user.one") == Array("now with a value".utf8))
      #expect(try Kernel.attribute(path, "user.two") == Array("longer than before".utf8))
      #expect(try Kernel.attribute(path, "user.ünïcode") == noise(500))
      try Kernel.removeAttribute(path, "user.two")
      #expect(try Kernel.attributes(path) == ["user.one", "user.ünïcode"])
      let handle = try Handle(path, O_RDONLY)
      try handle.setAttribute("user.handle", [1])
      #expect(try handle.attribute("user.one") == Array("now with a value".utf8))
      #expect(try Kernel.attribute(path, "user.handle") == [1])
    }
    // They belong to the node and to no name of it.
    #expect(try Kernel.attributes(plot("again")) == ["user.handle", "user.one", "user.ünïcode"])
    try Kernel.rename(plot("file"), plot("folder/moved"))
    #expect(try Kernel.attribute(plot("folder/moved"), "user.handle") == [1])
    try Kernel.unlink(plot("again"))
    try Kernel.unlink(plot("folder/moved"))
    try Kernel.makeFile(plot("file"))
    #expect(try Kernel.attributes(plot("file")) == [])
  }

  @Test(arguments: Ground.Kind.here) func `the calls refuse what their manual pages say`(kind: Ground.Kind) throws {
    let given: (Plot) throws -> Void = { try Kernel.setAttribute($0("file"), "user.there", "value") }
    func row(_ what: String, _ error: CInt, _ call: @escaping (Plot) throws -> Void) -> Refused {
      Refused(what, error, given: given, call)
    }
    let long = "user." + String(repeating: "n", count: 251)
    var rows = [
      row("creating one that is there", EEXIST) {
        try Kernel.setAttribute($0("file"), "user.there", "x", flags: AttributeFlag.create)
      },
      row("replacing one that is not there", ENODATA) {
        try Kernel.setAttribute($0("file"), "user.absent", "x", flags: AttributeFlag.replace)
      },
      row("creating and replacing one that is there", EEXIST) {
        try Kernel.setAttribute($0("file"), "user.there", "x", flags: AttributeFlag.create | AttributeFlag.replace)
      },
      row("creating and replacing one that is not there", ENODATA) {
        try Kernel.setAttribute($0("file"), "user.absent", "x", flags: AttributeFlag.create | AttributeFlag.replace)
      },
      row("an unknown flag", EINVAL) { try Kernel.setAttribute($0("file"), "user.a", "x", flags: 64) },
      row("reading one that is not there", ENODATA) { _ = try Kernel.attribute($0("file"), "user.absent") },
      row("removing one that is not there", ENODATA) { try Kernel.removeAttribute($0("file"), "user.absent") },
      row("a value that the buffer does not hold", ERANGE) {
        var buffer: [UInt8] = [0, 0]
        try CallError.check(GNU.attribute($0("file"), "user.there", &buffer, 2))
      },
      row("a list that the buffer does not hold", ERANGE) {
        var buffer: [UInt8] = [0, 0]
        try CallError.check(GNU.attributes($0("file"), &buffer, 2))
      },
      row("a name of 256 bytes", ERANGE) { try Kernel.setAttribute($0("file"), long, "x") },
      row("an empty name", ERANGE) { try Kernel.setAttribute($0("file"), "", "x") },
      row("a name without a name space", EOPNOTSUPP) { try Kernel.setAttribute($0("file"), "plain", "x") },
      row("an unknown name space", EOPNOTSUPP) { try Kernel.setAttribute($0("file"), "unknown.a", "x") },
      row("a value of more than 64 KiB", E2BIG) { try Kernel.setAttribute($0("file"), "user.a", noise(65_537)) },
    ]
    for name in ["to-file", "dangling", "fifo"] {
      rows.append(row("an attribute of \(name)", EPERM) { try Kernel.setAttribute($0(name), "user.a", "x") })
    }
    let calls: [(String, (String) throws -> Void)] = [
      ("setxattr", { try Kernel.setAttribute($0, "user.a", "x") }), ("listxattr", { _ = try Kernel.attributes($0) }),
      ("getxattr", { _ = try Kernel.attribute($0, "user.a") }),
      ("removexattr", { try Kernel.removeAttribute($0, "user.a") }),
    ]
    for (name, call) in calls {
      rows += [
        row("\(name) of nothing", ENOENT) { try call($0("missing")) },
        row("\(name) below a file", ENOTDIR) { try call($0("file/x")) },
        row("\(name) below a loop", ELOOP) { try call($0("loop/x")) },
      ]
    }
    try Refused.all(on: kind, rows)
  }

  /// A plain file system may keep it. SELinux, where it is on, answers for its label itself.
  @Test(
    .enabled(if: Ground.mountIsThere, Ground.missing),
    .enabled(if: access("/sys/fs/selinux/enforce", F_OK) != 0, "SELinux is on"))
  func `what the system would give a meaning to is not kept`() throws {
    let plot = try Plot.on(.mount)
    try Kernel.makeFile(plot("file"))
    for name in ["security.selinux", "system.posix_acl_access"] {
      #expect(throws: CallError(EOPNOTSUPP)) { _ = try Kernel.attribute(plot("file"), name) }
    }
    // Nobody but root may change what is in that space.
    if Person.canBeAnother {
      #expect(throws: CallError(EOPNOTSUPP)) { try Kernel.setAttribute(plot("file"), "security.selinux", "x") }
      #expect(throws: CallError(EOPNOTSUPP)) { try Kernel.removeAttribute(plot("file"), "security.selinux") }
      try Kernel.setAttribute(plot("file"), "security.other", "x")
      #expect(try Kernel.attribute(plot("file"), "security.other") == Array("x".utf8))
    }
    #expect(throws: CallError(ENODATA)) { _ = try Kernel.attribute(plot("file"), "security.absent") }
  }

  @Test(.enabled(if: Person.canBeAnother, Person.needsRoot), arguments: Ground.Kind.here)
  func `names in root's space are shown to root alone`(kind: Ground.Kind) throws {
    let plot = try Plot.on(kind)
    try Kernel.makeFile(plot("file"))
    for name in ["trusted.a", "user.b", "user.trusted.c"] { try Kernel.setAttribute(plot("file"), name, "x") }
    // A process that becomes another: who only takes another's place for a call keeps root's capabilities.
    let script = """
      import os
      path = "\(plot("file"))"
      def show(): print(*sorted(name for name in os.listxattr(path) if not name.startswith("security.")))
      show()
      os.setgroups([]); os.setgid(2003); os.setuid(1003)
      show()
      try: os.getxattr(path, "trusted.a")
      except OSError as error: print(error.errno)
      """
    let outcome = try plot.ground.desk.run("/usr/bin/python3", ["-c", script])
    #expect(
      outcome.output == "trusted.a user.b user.trusted.c\nuser.b user.trusted.c\n\(ENODATA)\n", "\(outcome.errors)")
  }

  @Test(arguments: Ground.Kind.here) func `the longest name and many of them are kept, and the largest value`(
    kind: Ground.Kind
  ) throws {
    let plot = try Plot.on(kind)
    try Kernel.makeFile(plot("file"))
    let long = "user." + String(repeating: "n", count: 250)
    try Kernel.setAttribute(plot("file"), long, "x")
    let names = (0..<40).map { "user.\($0)" }
    for name in names { try Kernel.setAttribute(plot("file"), name, name) }
    #expect(try Kernel.attributes(plot("file")) == (names + [long]).sorted())
    for name in names { #expect(try Kernel.attribute(plot("file"), name) == Array(name.utf8)) }
    do {
      try Kernel.setAttribute(plot("file"), "user.large", noise(65_536))
    } catch let error as CallError where !plot.isMount && [ENOSPC, E2BIG].contains(error.number) {
      // A plain file system may have no room for so much.
      return
    }
    #expect(try Kernel.attribute(plot("file"), "user.large") == noise(65_536))
  }
}
