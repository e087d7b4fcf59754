import Glibc
import Testing

/// Commands work on a vault while it is mounted, and each sees what the other did.
@Suite(.enabled(if: Ground.mountIsThere, Ground.missing)) struct CommandsBesideTests {
  let ground: Ground

  init() throws { ground = try Ground(.mount) }

  private func place(_ name: String) -> String { ground.path + "/" + name }

  @Test func `what a command changes is seen in the mount, whatever the kernel had kept`() throws {
    let desk = ground.desk
    for round in 0..<5 {
      // The kernel now knows that there is no such name, what the folder holds, and how many folders.
      #expect(try !Kernel.exists(place("file")) && Kernel.names(ground.path) == [])
      let links = try Kernel.stat(ground.path).links
      try desk.served("put", "-", "/file", input: noise(5000 + round))
      #expect(try Kernel.content(place("file")) == noise(5000 + round))
      #expect(try Kernel.stat(place("file")).size == 5000 + round)
      try desk.served("put", "-", "/file", input: noise(100_000, seed: 2))
      #expect(try Kernel.stat(place("file")).size == 100_000)
      #expect(try Kernel.content(place("file")) == noise(100_000, seed: 2))
      try desk.served("mkdir", "/folder")
      #expect(try Kernel.names(ground.path) == ["file", "folder"] && Kernel.stat(ground.path).links == links + 1)
      try desk.served("mv", "/file", "/folder/moved")
      #expect(try !Kernel.exists(place("file")) && Kernel.names(place("folder")) == ["moved"])
      #expect(try Kernel.content(place("folder/moved")) == noise(100_000, seed: 2))
      try desk.served("rm", "-r", "/folder")
      #expect(try !Kernel.exists(place("folder")) && Kernel.stat(ground.path).links == links)
    }
  }

  @Test func `another class is a change, of a file and of a folder, and stays one`() throws {
    let desk = ground.desk
    try Kernel.makeFile(place("file"), noise(100_000))
    try Kernel.mkdir(place("folder"))
    let file = try Handle(place("file"), O_RDONLY)
    #expect(try file.readAll() == noise(100_000))
    for name in ["file", "folder"] {
      for protection in ["none", "complete"] {
        let before = try Kernel.stat(place(name)).changed
        try desk.served("protect", "/\(name)", protection)
        #expect(try Kernel.stat(place(name)).changed > before, "\(name), \(protection)")
      }
    }
    #expect(try file.readAll() == noise(100_000))
  }

  @Test func `what the mount changes is seen by commands when it is closed or synced`() throws {
    let desk = ground.desk
    try Kernel.makeFile(place("file"), noise(300_000))
    #expect(try desk.served("cat", "/file").bytes == noise(300_000))
    let file = try Handle(place("file"), O_RDWR)
    try file.write("changed", at: 1000)
    try file.sync()
    #expect(try Array(desk.served("cat", "/file").bytes[1000..<1007]) == Array("changed".utf8))
    try file.truncate(to: 10)
    try Kernel.mkdir(place("folder"))
    try Kernel.rename(place("file"), place("folder/moved"))
    try Kernel.symlink("moved", at: place("folder/link"))
    try Kernel.chmod(place("folder/moved"), 0o600)
    let listing = try desk.served("ls", "-R").output
    #expect(listing == "folder/\nfolder/link\nfolder/moved\n")
    let text = try desk.served("stat", "/folder/moved").output
    #expect(text.contains("permissions 0600\n") && text.contains("size        10"))
    try desk.served("rm", "/folder/moved")
    // It is open here, and goes on.
    #expect(try file.stat().links == 0)
    #expect(try file.read(10, at: 0) == Array(noise(300_000)[..<10]))
    #expect(try Kernel.names(place("folder")) == ["link"])
  }

  @Test func `an open file and its mapping see what a command puts in its place or into it`() throws {
    let desk = ground.desk
    try Kernel.makeFile(place("file"), noise(100_000))
    let file = try Handle(place("file"), O_RDONLY)
    let map = try Mapping(of: file, count: 100_000, access: PROT_READ)
    #expect(map.bytes == noise(100_000))
    let number = try file.stat().number
    try desk.served("put", "-", "/file", input: noise(100_000, seed: 2))
    let stat = try Kernel.stat(place("file"))
    // Either it is the same file, and all of it is new, or another one, and the old one is whole.
    let expected = stat.number == number ? noise(100_000, seed: 2) : noise(100_000)
    #expect(try firstDifference(file.readAll(), expected) == nil && firstDifference(map.bytes, expected) == nil)
    #expect(try Kernel.content(place("file")) == noise(100_000, seed: 2))
  }

  @Test func `many commands and many programs at once`() throws {
    let desk = ground.desk
    let puts = try (0..<4).map { number in
      let put = try desk.start("coffer", ["put", "-", "/put-\(number)"])
      #expect(put.send(noise(200_000, seed: UInt64(number))))
      return put
    }
    try inParallel(4) { number in
      for round in 0..<10 {
        try Kernel.makeFile(place("made-\(number)-\(round)"), noise(20_000, seed: UInt64(round)))
        _ = try Kernel.names(ground.path)
      }
    }
    for put in puts { #expect(put.wait().code == 0) }
    for number in 0..<4 { #expect(try Kernel.content(place("put-\(number)")) == noise(200_000, seed: UInt64(number))) }
    #expect(try Kernel.names(ground.path).count == 44)
    #expect(try desk.served("ls").output.split(separator: "\n").count == 44)
  }

  /// Runs `body` with the path of a second mount of the vault.
  private func withSecondMount(_ body: (String) throws -> Void) throws {
    let second = ground.desk.path("second")
    try Kernel.mkdir(second)
    try ground.desk.served("mount", second)
    defer { _ = try? ground.desk.run("coffer", ["unmount", "--force", second]) }
    try body(second)
  }

  @Test func `what one mount of a vault has answered is seen in another`() throws {
    try withSecondMount { second in
      for round in 0..<50 {
        #expect(try !Kernel.exists(second + "/file"))
        try Kernel.makeFile(place("file"), noise(50_000 + round))
        #expect(try Kernel.names(second) == ["file"])
        let reader = try Handle(second + "/file", O_RDONLY)
        #expect(try reader.readAll() == noise(50_000 + round))
        let file = try Handle(place("file"), O_RDWR)
        try file.write("changed", at: 100)
        #expect(try reader.read(7, at: 100) == Array("changed".utf8))
        try file.truncate(to: 1000 + round)
        #expect(try reader.stat().size == 1000 + round && Kernel.stat(second + "/file").size == 1000 + round)
        try Kernel.chmod(place("file"), 0o600 + mode_t(round % 8))
        #expect(try reader.stat().permissions == 0o600 + mode_t(round % 8))
        try Kernel.link(place("file"), place("other"))
        #expect(try reader.stat().links == 2)
        // Also where the kernel gives back first what it may have of mappings.
        let writer = try Handle(second + "/file", O_RDWR)
        try Kernel.setTimes(second + "/file", modified: Moment(round, 5))
        #expect(try reader.stat().modified == Moment(round, 5))
        #expect(try Kernel.stat(place("file")).modified == Moment(round, 5))
        try Kernel.rename(second + "/file", second + "/moved")
        withExtendedLifetime(writer) {}
        #expect(try !Kernel.exists(place("file")) && Set(Kernel.names(ground.path)) == ["moved", "other"])
        // One of its names, but the time is the file's.
        #expect(try Kernel.stat(place("other")).changed == reader.stat().changed)
        try Kernel.unlink(place("moved"))
        #expect(try Kernel.names(second) == ["other"] && reader.stat().links == 1)
        try Kernel.unlink(second + "/other")
        #expect(try Kernel.names(ground.path) == [])
      }
    }
  }

  @Test func `what two mounts append to one file is all there, in both`() throws {
    try withSecondMount { second in
      try Kernel.makeFile(place("log"), [])
      let one = try Handle(place("log"), O_WRONLY | O_APPEND)
      let other = try Handle(second + "/log", O_WRONLY | O_APPEND)
      let readers = try [Handle(place("log"), O_RDONLY), Handle(second + "/log", O_RDONLY)]
      var expected: [UInt8] = []
      for round in 0..<300 {
        for (name, log) in [("a", one), ("b", other)] {
          try log.write("\(name)\(round)\n")
          expected += Array("\(name)\(round)\n".utf8)
          for reader in readers { try #require(try reader.readAll() == expected) }
        }
      }
      // The first mount's kernel has not asked for the size since.
      try other.write("last but one\n")
      try ground.desk.served("unmount", "--force", second)
      try one.write("last\n")
      expected += Array("last but one\nlast\n".utf8)
      try one.sync()
      try #require(try readers[0].readAll() == expected)
      try #require(try Array(ground.desk.served("cat", "/log").bytes) == expected)
    }
  }

  /// Each mount's kernel is told of what the other changes while programs hold its locks for what they change themselves.
  @Test(.timeLimit(.minutes(5))) func `two mounts whose programs change the same at once do not wait for each other`()
    throws
  {
    let (count, pages) = (6, 24)
    /// What a program changes in a mapping, in a page of its own: a kernel gives back whole pages.
    @Sendable func mapped(_ number: Int) -> Int { (16 + number) << 12 }
    try withSecondMount { second in
      try Kernel.makeFile(place("common"), noise(pages << 12))
      try Kernel.mkdir(place("one"))
      try Kernel.mkdir(place("two"))
      let path = ground.path
      _ = try inParallel(count) { number in
        let top = number % 2 == 0 ? path : second
        let common = try Handle(top + "/common", O_RDWR)
        let log = try Handle(top + "/log", O_WRONLY | O_APPEND | O_CREAT)
        let map = try Mapping(of: common, count: pages << 12)
        for round in 0..<100 {
          try log.write("\(number) \(round)\n")
          // Nobody is the one that makes it.
          _ = try Handle(top + "/made-\(round)", O_WRONLY | O_CREAT)
          try common.write("\(number)", at: round * 600 + number)
          map[mapped(number)] = UInt8(round)
          if round % 10 == number { try common.sync() }
          try Kernel.makeFile(top + "/one/\(number)", noise(100))
          try Kernel.rename(top + "/one/\(number)", top + "/two/\(number)-\(round)")
          try Kernel.mkdir(top + "/one/folder-\(number)")
          try Kernel.rename(top + "/one/folder-\(number)", top + "/two/folder-\(number)")
          try Kernel.rmdir(top + "/two/folder-\(number)")
          if round % 2 == 1 { try Kernel.unlink(top + "/two/\(number)-\(round)") }
          _ = try Kernel.names(top + "/two")
        }
      }
      var content = noise(pages << 12)
      for number in 0..<count {
        for round in 0..<100 { content[round * 600 + number] = UInt8(ascii: "0") + UInt8(number) }
        content[mapped(number)] = 99
      }
      let expected = Set((0..<count).flatMap { number in stride(from: 0, to: 100, by: 2).map { "\(number)-\($0)" } })
      for top in [path, second] {
        func wait(until isSo: () throws -> Bool) throws { while try !isSo() { sched_yield() } }
        // Those that met are told of when both have answered.
        try wait { try Set(Kernel.names(top + "/two")) == expected && Kernel.names(top + "/one") == [] }
        let lines = Set((0..<count).flatMap { number in (0..<100).map { "\(number) \($0)" } })
        try wait {
          try Set(String(decoding: Kernel.content(top + "/log"), as: UTF8.self).split(separator: "\n").map(String.init))
            == lines
        }
        try wait { try Kernel.content(top + "/common") == content }
      }
    }
  }
}
