import Glibc
import Testing

/// unlink(2) and rmdir(2), also of what is open.
@Suite struct RemovalTests {
  @Test(arguments: Ground.Kind.here) func `unlink and rmdir refuse what their manual pages say`(
    kind: Ground.Kind
  ) throws {
    let long = String(repeating: "n", count: 256)
    var rows: [Refused] = []
    let removers: [(String, (String) throws -> Void)] = [("unlink", Kernel.unlink), ("rmdir", Kernel.rmdir)]
    for (name, remove) in removers {
      rows += [
        Refused("\(name) of nothing", ENOENT) { try remove($0("missing")) },
        Refused("\(name) below nothing", ENOENT) { try remove($0("no/x")) },
        Refused("\(name) below a file", ENOTDIR) { try remove($0("file/x")) },
        Refused("\(name) below a loop", ELOOP) { try remove($0("loop/x")) },
        Refused("\(name) of a name of 256 bytes", ENAMETOOLONG) { try remove($0(long)) },
        Refused("\(name) without a name", ENOENT) { _ in try remove("") },
      ]
    }
    rows += [
      Refused("unlink of a folder", EISDIR) { try Kernel.unlink($0("bare")) },
      Refused("unlink of a file with a slash", ENOTDIR) { try Kernel.unlink($0("file/")) },
      Refused("rmdir of a full folder", ENOTEMPTY) { try Kernel.rmdir($0("folder")) },
      Refused("rmdir of .", EINVAL) { try Kernel.rmdir($0("bare/.")) },
      Refused("rmdir of ..", ENOTEMPTY) { try Kernel.rmdir($0("bare/..")) },
    ]
    rows += ["file", "fifo", "to-file", "to-folder", "dangling"].map { name in
      Refused("rmdir of \(name)", ENOTDIR) { try Kernel.rmdir($0(name)) }
    }
    try Refused.all(on: kind, rows)
  }

  /// truncate(2) looks a name up and waits its turn: the file may lose it meanwhile.
  @Test(arguments: Ground.Kind.here) func `a file that lost its name since it was found can be cut`(kind: Ground.Kind)
    throws
  {
    let plot = try Plot.on(kind)
    for isSynced in [false, true] {
      try Kernel.makeFile(plot("file"), noise(100))
      let found = try Handle(plot("file"), GNU.pathOnly)
      try Kernel.unlink(plot("file"))
      if isSynced { try Handle(plot.path, O_RDONLY).sync() }
      try Kernel.truncate("/proc/self/fd/\(found.number)", to: 5)
      #expect(try found.stat().links == 0)
    }
  }

  @Test(arguments: Ground.Kind.here) func `an unlinked file lives on in every way while it is open`(
    kind: Ground.Kind
  ) throws {
    let plot = try Plot.on(kind)
    for count in [0, 100, 200_000] {
      try Kernel.makeFile(plot("file"), noise(count))
      let file = try Handle(plot("file"), O_RDWR)
      let other = try Handle(plot("file"), O_RDONLY)
      let number = try file.stat().number
      try Kernel.unlink(plot("file"))
      #expect(try Kernel.names(plot.path) == [])
      #expect(try file.stat().links == 0 && file.stat().number == number && file.stat().size == count)
      #expect(try file.readAll() == noise(count))
      // The name is free for another file, which is another.
      try Kernel.makeFile(plot("file"), "another")
      #expect(try Kernel.stat(plot("file")).number != number)
      try file.write(noise(70_000, seed: 2), at: count)
      #expect(try other.readAll() == noise(count) + noise(70_000, seed: 2))
      try file.truncate(to: count + 10)
      try file.chmod(0o600)
      try file.setTimes(accessed: Moment(5, 6), modified: Moment(7, 8))
      try file.setAttribute("user.mark", [1, 2])
      #expect(try file.attribute("user.mark") == [1, 2])
      try file.sync()
      let stat = try other.stat()
      #expect(stat.size == count + 10 && stat.permissions == 0o600 && stat.modified == Moment(7, 8))
      // What has no name any more is found by its handle.
      let reopened = try Handle("/proc/self/fd/\(file.number)", O_RDONLY)
      #expect(try reopened.readAll() == noise(count) + noise(70_000, seed: 2)[..<10])
      #expect(
        outcome { try Kernel.link("/proc/self/fd/\(file.number)", plot("back"), following: true) } == CallError(ENOENT))
      #expect(try Kernel.text(plot("file")) == "another")
      try Kernel.unlink(plot("file"))
    }
  }

  @Test(arguments: Ground.Kind.here) func `a removed folder that is open is empty and takes nothing`(
    kind: Ground.Kind
  ) throws {
    let plot = try Plot.on(kind)
    try Kernel.mkdir(plot("folder"))
    let folder = try Handle(plot("folder"), O_RDONLY | O_DIRECTORY)
    try Kernel.rmdir(plot("folder"))
    #expect(try folder.stat().links == 0)
    #expect(outcome { _ = try folder.listing() } == CallError(ENOENT))
    func refused(_ call: () -> CInt) -> CInt { call() < 0 ? errno : 0 }
    #expect(refused { openat(folder.number, "new", O_CREAT | O_RDWR, 0o644) } == ENOENT)
    #expect(refused { mkdirat(folder.number, "new", 0o755) } == ENOENT)
    #expect(refused { symlinkat("x", folder.number, "new") } == ENOENT)
    try Kernel.makeFile(plot("file"))
    #expect(refused { renameat(GNU.here, plot("file"), folder.number, "new") } == ENOENT)
    #expect(refused { linkat(GNU.here, plot("file"), folder.number, "new", 0) } == ENOENT)
    // Its name is free, and means another folder.
    try Kernel.mkdir(plot("folder"))
    try Kernel.makeFile(plot("folder/new"))
    #expect(try folder.stat().number != Kernel.stat(plot("folder")).number)
  }

  @Test(arguments: Ground.Kind.here) func `what has no name any more can be changed while it is open`(
    kind: Ground.Kind
  ) throws {
    let plot = try Plot.on(kind)
    try plot.furnish()
    let opened = try [
      "bare": Handle(plot("bare"), O_RDONLY | O_DIRECTORY), "fifo": Handle(plot("fifo"), O_RDWR),
      "empty": Handle(plot("empty"), O_RDWR),
    ]
    try Kernel.rmdir(plot("bare"))
    for name in ["fifo", "empty"] { try Kernel.unlink(plot(name)) }
    for (name, node) in opened {
      let before = try node.stat()
      try node.chmod(0o711)
      try node.setTimes(accessed: Moment(5, 6), modified: Moment(7, 8))
      let stat = try node.stat()
      #expect(stat.permissions == 0o711 && stat.accessed == Moment(5, 6) && stat.modified == Moment(7, 8), "\(name)")
      #expect(stat.links == 0 && stat.number == before.number && stat.changed >= before.changed, "\(name)")
    }
  }

  @Test(arguments: Ground.Kind.here) func `what loses its last name changes by that`(kind: Ground.Kind) throws {
    let plot = try Plot.on(kind)
    try plot.furnish()
    try Kernel.mkdir(plot("other"))
    let names = ["bare", "fifo", "empty", "to-file", "other"]
    let held = try names.map { try Handle(plot($0), GNU.pathOnly | O_NOFOLLOW) }
    let before = try held.map { try $0.stat() }
    before.map(\.changed).max()?.waitUntilPast()
    for name in names {
      switch name {
      case "bare": try Kernel.rmdir(plot(name))
      case "other": try Kernel.rename(plot("folder"), plot(name))
      default: try Kernel.unlink(plot(name))
      }
    }
    for (index, name) in names.enumerated() {
      let stat = try held[index].stat()
      #expect(stat.links == 0 && stat.changed > before[index].changed, "\(name)")
      #expect(stat.modified == before[index].modified, "\(name)")
    }
  }

  /// A path's descriptor holds a file without having it open.
  @Test(arguments: Ground.Kind.here) func `what is held can be opened after its last name has gone`(
    kind: Ground.Kind
  ) throws {
    let plot = try Plot.on(kind)
    for (count, isReplaced) in [(0, false), (100, true), (200_000, false), (200_000, true)] {
      try Kernel.makeFile(plot("file"), noise(count))
      let held = try Handle(plot("file"), GNU.pathOnly)
      if isReplaced {
        try Kernel.makeFile(plot("other"), "another")
        try Kernel.rename(plot("other"), plot("file"))
      } else {
        try Kernel.unlink(plot("file"))
      }
      func reopened(_ flags: CInt) throws -> Handle { try Handle("/proc/self/fd/\(held.number)", flags) }
      #expect(try reopened(O_RDONLY).readAll() == noise(count))
      try reopened(O_RDWR).write(noise(90_000, seed: 2), at: count)
      #expect(try reopened(O_RDWR).readAll() == noise(count) + noise(90_000, seed: 2))
      #expect(try held.stat().links == 0 && held.stat().size == count + 90_000)
      try reopened(O_WRONLY | O_TRUNC).write("short")
      try Handle(plot.path, O_RDONLY).sync()
      #expect(try reopened(O_RDONLY).readAll() == Array("short".utf8))
      #expect(
        outcome { try Kernel.link("/proc/self/fd/\(held.number)", plot("back"), following: true) } == CallError(ENOENT))
      if isReplaced { try Kernel.unlink(plot("file")) }
    }
  }

  @Test(arguments: Ground.Kind.here) func `what has no name any more has extended attributes while it is held`(
    kind: Ground.Kind
  ) throws {
    let plot = try Plot.on(kind)
    try plot.furnish()
    // Links and fifos have none of a user's.
    let names = ["bare", "empty"] + (Person.canBeAnother ? ["fifo", "to-file"] : [])
    let held = try names.map { try Handle(plot($0), GNU.pathOnly | O_NOFOLLOW) }
    func path(_ index: Int) -> String { "/proc/self/fd/\(held[index].number)" }
    func attribute(_ index: Int, _ name: String) -> String { (index < 2 ? "user." : "trusted.") + name }
    func value(_ index: Int, _ name: String) throws -> String {
      String(decoding: try Kernel.attribute(path(index), attribute(index, name), following: true), as: UTF8.self)
    }
    func set(_ index: Int, _ name: String, _ value: String) throws {
      try Kernel.setAttribute(path(index), attribute(index, name), value, following: true)
    }
    for index in names.indices { try set(index, "before", "as it was") }
    for name in names { try name == "bare" ? Kernel.rmdir(plot(name)) : Kernel.unlink(plot(name)) }
    for (index, name) in names.enumerated() {
      #expect(try value(index, "before") == "as it was", "\(name)")
      try set(index, "after", "new")
      #expect(try value(index, "after") == "new", "\(name)")
      try Kernel.removeAttribute(path(index), attribute(index, "before"), following: true)
      #expect(outcome { _ = try value(index, "before") } == CallError(ENODATA), "\(name)")
      let expected = index < 2 ? [attribute(index, "after")] : []
      #expect(try Kernel.attributes(path(index), following: true) == expected, "\(name)")
      #expect(try held[index].stat().links == 0, "\(name)")
    }
  }

  @Test(arguments: Ground.Kind.here) func `a folder that is replaced while it is open is gone as well`(
    kind: Ground.Kind
  ) throws {
    let plot = try Plot.on(kind)
    try plot.furnish()
    let bare = try Handle(plot("bare"), O_RDONLY | O_DIRECTORY)
    try Kernel.rename(plot("folder"), plot("bare"))
    #expect(try bare.stat().links == 0)
    #expect(
      outcome { try CallError.check(openat(bare.number, "new", O_CREAT | O_RDWR, 0o644)) } == CallError(ENOENT))
    #expect(try Kernel.names(plot("bare")) == ["inside"])
  }

  @Test(arguments: Ground.Kind.here) func `a tree of many is removed to the last`(kind: Ground.Kind) throws {
    let plot = try Plot.on(kind)
    try Kernel.mkdir(plot("tree"))
    for outer in 0..<8 {
      try Kernel.mkdir(plot("tree/\(outer)"))
      for inner in 0..<40 { try Kernel.makeFile(plot("tree/\(outer)/\(inner)"), "\(inner)") }
    }
    #expect(try Kernel.stat(plot("tree")).links == 10)
    for outer in 0..<8 {
      for name in try Kernel.names(plot("tree/\(outer)")) { try Kernel.unlink(plot("tree/\(outer)/\(name)")) }
      try Kernel.rmdir(plot("tree/\(outer)"))
      #expect(try Kernel.stat(plot("tree")).links == 9 - outer)
    }
    try Kernel.rmdir(plot("tree"))
    #expect(try Kernel.names(plot.path) == [])
  }
}
