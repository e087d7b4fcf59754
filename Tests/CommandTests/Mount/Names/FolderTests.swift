import Glibc
import Testing

/// Folders as places to be in and to start from.
@Suite struct FolderTests {
  private func current() throws -> String {
    guard let path = getcwd(nil, 0) else { throw CallError(errno) }
    defer { free(path) }
    return String(cString: path)
  }

  @Test(arguments: Ground.Kind.here) func `the current folder is the folder and not its name`(kind: Ground.Kind) throws
  {
    let plot = try Plot.on(kind)
    try plot.furnish()
    let (before, after, gone, links) = try onOwnThread {
      try CallError.check(chdir(plot("folder")))
      let before = try current()
      try Kernel.rename(plot("folder"), plot("bare/moved"))
      try Kernel.makeFile("here", "made in the current folder")
      let after = try current()
      try Kernel.unlink("here")
      try Kernel.unlink("inside")
      try Kernel.rmdir(plot("bare/moved"))
      let gone = [
        outcome { _ = try current() }, outcome { try Kernel.makeFile("new") }, outcome { _ = try Kernel.stat("name") },
        outcome { _ = try Kernel.stat("..") },
      ]
      return (before, after, gone, Result { try Kernel.stat(".").links })
    }
    #expect(try links.get() == 0)
    #expect(before == plot("folder") && after == plot("bare/moved"))
    #expect(gone == [CallError(ENOENT), CallError(ENOENT), CallError(ENOENT), nil])
    #expect(try Kernel.names(plot("bare")) == [])
  }

  @Test(arguments: Ground.Kind.here) func `calls that start from an open folder go where it goes`(
    kind: Ground.Kind
  ) throws {
    let plot = try Plot.on(kind)
    try plot.furnish()
    for flags in [O_RDONLY | O_DIRECTORY, GNU.pathOnly | O_DIRECTORY] {
      let folder = try Handle(plot("folder"), flags)
      try Kernel.rename(plot("folder"), plot("bare/moved"))
      try CallError.check(mkdirat(folder.number, "new", 0o755))
      let file = Handle(taking: try CallError.check(openat(folder.number, "new/file", O_CREAT | O_RDWR, 0o644)))
      try file.write("content")
      try CallError.check(linkat(folder.number, "new/file", folder.number, "linked", 0))
      try CallError.check(renameat(folder.number, "linked", folder.number, "renamed"))
      try CallError.check(symlinkat("renamed", folder.number, "link"))
      #expect(try Kernel.text(plot("bare/moved/link")) == "content")
      for name in ["link", "renamed", "new/file"] { try CallError.check(unlinkat(folder.number, name, 0)) }
      let error = outcome { try CallError.check(unlinkat(folder.number, "inside", GNU.removeFolder)) }
      #expect(error == CallError(ENOTDIR))
      try CallError.check(unlinkat(folder.number, "new", GNU.removeFolder))
      try Kernel.rename(plot("bare/moved"), plot("folder"))
      let noFolder = try Handle(plot("file"), O_RDONLY)
      #expect(outcome { try CallError.check(openat(noFolder.number, "x", O_RDONLY)) } == CallError(ENOTDIR))
    }
    #expect(try Kernel.names(plot("folder")) == ["inside"])
  }

  @Test(arguments: Ground.Kind.here) func `folders lie in folders deeper than a path can say`(kind: Ground.Kind) throws
  {
    let plot = try Plot.on(kind)
    let name = String(repeating: "deep", count: 40)
    let depth = 60
    try onOwnThread {
      try CallError.check(chdir(plot.path))
      for level in 0..<depth {
        try Kernel.mkdir(name)
        try CallError.check(chdir(name))
        try Kernel.makeFile("file", "\(level)")
      }
      guard try Kernel.text("file") == "\(depth - 1)", try Kernel.stat(".").links == 2 else { throw CallError(EIO) }
      for level in (0..<depth).reversed() {
        guard try Kernel.text("file") == "\(level)" else { throw CallError(EIO) }
        try Kernel.unlink("file")
        try CallError.check(chdir(".."))
        try Kernel.rmdir(name)
      }
    }
    #expect(try Kernel.names(plot.path) == [])
  }

  @Test(arguments: Ground.Kind.here) func `hundreds of files are open at once`(kind: Ground.Kind) throws {
    let plot = try Plot.on(kind)
    let files = try (0..<400).map { number in
      let file = try Handle(plot("\(number)"), O_CREAT | O_RDWR)
      try file.write(noise(6000 + number, seed: UInt64(number)))
      return file
    }
    for number in files.indices where number.isMultiple(of: 3) { try Kernel.unlink(plot("\(number)")) }
    for (number, file) in files.enumerated() {
      #expect(try file.readAll() == noise(6000 + number, seed: UInt64(number)))
      #expect(try file.stat().links == (number.isMultiple(of: 3) ? 0 : 1))
    }
    #expect(try Kernel.names(plot.path).count == 266)
  }
}
