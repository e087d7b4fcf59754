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

  @Test func `two mounts of a vault come to show the same`() throws {
    let second = ground.desk.path("second")
    try Kernel.mkdir(second)
    try ground.desk.served("mount", second)
    defer { _ = try? ground.desk.run("coffer", ["unmount", "--force", second]) }
    /// A mount is told of another one's changes when they are made, and not before the one that makes them goes on.
    func wait(until isSo: () throws -> Bool) throws { while try !isSo() { sched_yield() } }
    for round in 0..<5 {
      #expect(try !Kernel.exists(second + "/file"))
      try Kernel.makeFile(place("file"), noise(50_000 + round))
      try wait { try Kernel.exists(second + "/file") && Kernel.content(second + "/file") == noise(50_000 + round) }
      let file = try Handle(place("file"), O_RDWR)
      try file.write("changed", at: 100)
      try file.sync()
      try wait { try Array(Kernel.content(second + "/file")[100..<107]) == Array("changed".utf8) }
      try Kernel.rename(second + "/file", second + "/moved")
      try wait { try !Kernel.exists(place("file")) && Kernel.names(ground.path) == ["moved"] }
      try Kernel.unlink(place("moved"))
      try wait { try Kernel.names(second) == [] }
    }
  }

  @Test func `what two mounts append to one file is all there`() throws {
    let second = ground.desk.path("second")
    try Kernel.mkdir(second)
    try ground.desk.served("mount", second)
    defer { _ = try? ground.desk.run("coffer", ["unmount", "--force", second]) }
    try Kernel.makeFile(place("log"), [])
    let one = try Handle(place("log"), O_WRONLY | O_APPEND)
    let other = try Handle(second + "/log", O_WRONLY | O_APPEND)
    for round in 0..<300 {
      try one.write("a\(round)\n")
      try other.write("b\(round)\n")
    }
    let expected = (0..<300).map { "a\($0)\nb\($0)\n" }.joined()
    try one.sync()
    try #require(try ground.desk.served("cat", "/log").output == expected)
    func wait(until isSo: () throws -> Bool) throws { while try !isSo() { sched_yield() } }
    for path in [place("log"), second + "/log"] { try wait { try Kernel.content(path) == Array(expected.utf8) } }
  }
}
