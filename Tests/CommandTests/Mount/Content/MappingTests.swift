import Glibc
import Testing

/// mmap(2), shared and private.
@Suite struct MappingTests {
  private static let page = 4096

  @Test(arguments: Ground.Kind.here) func `what a shared mapping is told is the file's, and the other way round`(
    kind: Ground.Kind
  ) throws {
    let plot = try Plot.on(kind)
    let count = 300_000
    try Kernel.makeFile(plot("file"), noise(count))
    let file = try Handle(plot("file"), O_RDWR)
    let other = try Handle(plot("file"), O_RDWR)
    let one = try Mapping(of: file, count: count)
    let two = try Mapping(of: other, count: count)
    let part = try Mapping(of: other, at: 16 * Self.page, count: 2 * Self.page)
    #expect(firstDifference(one.bytes, noise(count)) == nil)
    one[70_000..<70_005] = Array("hello".utf8)
    #expect(two[70_000..<70_005] == Array("hello".utf8))
    #expect(part[(70_000 - 16 * Self.page)..<(70_005 - 16 * Self.page)] == Array("hello".utf8))
    #expect(try other.read(5, at: 70_000) == Array("hello".utf8))
    try other.write("WORLD", at: 70_003)
    #expect(one[70_000..<70_008] == Array("helWORLD".utf8))
    try one.sync()
    #expect(try Array(Kernel.content(plot("file"))[70_000..<70_008]) == Array("helWORLD".utf8))
    #expect(try file.stat().size == count)
  }

  @Test(arguments: Ground.Kind.here) func `a mapping needs the access that its manual page says`(
    kind: Ground.Kind
  ) throws {
    let plot = try Plot.on(kind)
    try Kernel.makeFile(plot("file"), noise(20_000))
    let (reading, writing) = try (Handle(plot("file"), O_RDONLY), Handle(plot("file"), O_WRONLY))
    func refused(_ file: Handle, _ access: CInt, isPrivate: Bool = false) -> CallError? {
      outcome { _ = try Mapping(of: file, count: 20_000, isPrivate: isPrivate, access: access) }
    }
    #expect(refused(reading, PROT_READ) == nil)
    #expect(refused(reading, PROT_READ | PROT_WRITE) == CallError(EACCES))
    for access in [PROT_READ, PROT_WRITE, PROT_READ | PROT_WRITE] {
      #expect(refused(writing, access) == CallError(EACCES))
      #expect(refused(writing, access, isPrivate: true) == CallError(EACCES))
    }
  }

  @Test(.enabled(if: Program.areHere("python3"), "python3 is not here"), arguments: Ground.Kind.here)
  func `who reads a mapping behind the end of its file gets a signal`(kind: Ground.Kind) throws {
    let program = try Program(in: Plot.on(kind))
    let script = """
      import mmap, os, resource, sys
      resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
      file = os.open("file", os.O_CREAT | os.O_RDWR)
      os.ftruncate(file, 20000)
      found = mmap.mmap(file, 20000)
      os.ftruncate(file, 5000)
      # Its last page is there to its end.
      assert found[8191] == 0
      found[8192]
      """
    #expect(try program.start("exec python3 -c '\(script)'").wait().code == 128 + SIGBUS)
  }

  @Test(arguments: Ground.Kind.here) func `a private mapping keeps its changes to itself`(kind: Ground.Kind) throws {
    let plot = try Plot.on(kind)
    try Kernel.makeFile(plot("file"), noise(20_000))
    // It needs no right to write.
    let file = try Handle(plot("file"), O_RDONLY)
    let map = try Mapping(of: file, count: 20_000, isPrivate: true)
    map[100..<105] = Array("mine!".utf8)
    #expect(map[100..<105] == Array("mine!".utf8))
    #expect(try Kernel.content(plot("file")) == noise(20_000))
    // A page that it has not touched follows the file.
    try Kernel.open(plot("file"), O_RDWR).write("theirs", at: 10_000)
    #expect(map[10_000..<10_006] == Array("theirs".utf8))
    #expect(map[100..<105] == Array("mine!".utf8))
  }

  @Test(arguments: Ground.Kind.here) func `a mapping outlives its handle and the file's name`(kind: Ground.Kind) throws
  {
    let plot = try Plot.on(kind)
    try Kernel.makeFile(plot("file"), noise(100_000))
    let keeper = try Handle(plot("file"), O_RDONLY)
    var map: Mapping? = try Mapping(of: Kernel.open(plot("file"), O_RDWR), count: 100_000)
    try Kernel.unlink(plot("file"))
    map?[50_000] = 1
    map?[99_999] = 2
    var expected = noise(100_000)
    (expected[50_000], expected[99_999]) = (1, 2)
    #expect(map?.bytes == expected)
    map = nil
    #expect(try firstDifference(keeper.readAll(), expected) == nil)
  }

  @Test(arguments: Ground.Kind.here) func `what is behind the end of the file is not stored`(kind: Ground.Kind) throws {
    let plot = try Plot.on(kind)
    try Kernel.makeFile(plot("file"), "short")
    let file = try Handle(plot("file"), O_RDWR)
    let map = try Mapping(of: file, count: Self.page)
    #expect(map[5..<Self.page] == [UInt8](repeating: 0, count: Self.page - 5))
    map[2..<10] = Array("uttered!".utf8)
    try map.sync()
    #expect(try file.stat().size == 5 && file.text == "shutt")
    try file.truncate(to: 12)
    #expect(try Array(file.readAll()[..<5]) == Array("shutt".utf8) && file.stat().size == 12)
  }

  @Test(arguments: Ground.Kind.here) func `a mapping sees its file grow and holes filled`(kind: Ground.Kind) throws {
    let plot = try Plot.on(kind)
    let file = try Handle(plot("file"), O_CREAT | O_RDWR)
    try file.truncate(to: 1 << 20)
    let map = try Mapping(of: file, count: 2 << 20)
    map[500_000..<500_004] = Array("hole".utf8)
    try file.truncate(to: 2 << 20)
    map[1_500_000..<1_500_004] = Array("grow".utf8)
    try file.write("written", at: 1_800_000)
    #expect(map[1_800_000..<1_800_007] == Array("written".utf8))
    try map.sync()
    try file.sync()
    var expected = [UInt8](repeating: 0, count: 2 << 20)
    for (offset, text) in [(500_000, "hole"), (1_500_000, "grow"), (1_800_000, "written")] {
      expected.replaceSubrange(offset..<(offset + text.utf8.count), with: Array(text.utf8))
    }
    #expect(try firstDifference(Kernel.content(plot("file")), expected) == nil)
    // A hole that is punched, and a file that is cut off, are seen in memory as well.
    try file.change(RangeChange.punchHole | RangeChange.keepSize, 1_500_000, 4)
    #expect(map[1_500_000..<1_500_004] == [0, 0, 0, 0])
    try file.truncate(to: 1_800_003)
    #expect(map[1_800_000..<1_800_007] == Array("wri".utf8) + [0, 0, 0, 0])
    try file.truncate(to: 2 << 20)
    #expect(map[1_800_000..<1_800_007] == Array("wri".utf8) + [0, 0, 0, 0])
  }
}
