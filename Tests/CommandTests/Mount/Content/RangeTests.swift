import Glibc
import Testing

/// fallocate(2), holes, and lseek(2) for data and holes.
@Suite struct RangeTests {
  private static let large = 1 << 20

  @Test(arguments: Ground.Kind.here) func `fallocate refuses what its manual page says`(kind: Ground.Kind) throws {
    func row(
      _ what: String, _ error: CInt, _ change: CInt, _ offset: Int = 0, _ count: Int = 4096, of name: String = "file",
      flags: CInt = O_RDWR
    ) -> Refused {
      Refused("\(what), \(change)", error) { try Kernel.open($0(name), flags).change(change, offset, count) }
    }
    var rows: [Refused] = []
    for change in [RangeChange.allocate, RangeChange.keepSize, RangeChange.punchHole | RangeChange.keepSize] {
      rows += [
        row("nothing", EINVAL, change, 0, 0),
        row("less than nothing", EINVAL, change, 0, -1),
        row("before the beginning", EINVAL, change, -1, 10),
        row("beyond the largest offset", EFBIG, change, .max - 10, 100),
        row("a file that is open for reading", EBADF, change, flags: O_RDONLY),
        row("a folder", EBADF, change, of: "folder", flags: O_RDONLY),
        row("a fifo", ESPIPE, change, of: "fifo"),
      ]
    }
    rows += [
      row("a hole that may change the size", EOPNOTSUPP, RangeChange.punchHole),
      row("collapse with another flag", EOPNOTSUPP, RangeChange.collapse | RangeChange.keepSize),
      row("a hole and zeros", EOPNOTSUPP, RangeChange.punchHole | RangeChange.zero | RangeChange.keepSize),
      row("an unknown flag", EOPNOTSUPP, 1 << 10),
    ]
    if kind == .mount {
      rows += [
        row("collapse", EOPNOTSUPP, RangeChange.collapse), row("insert", EOPNOTSUPP, RangeChange.insert),
      ]
      let (keepSize, zero) = (RangeChange.keepSize, RangeChange.zero)
      for change in [RangeChange.allocate, keepSize, RangeChange.punchHole | keepSize, zero | keepSize, zero] {
        rows.append(row("beyond the longest file", EFBIG, change, 1 << 50, 1))
      }
    }
    try Refused.all(on: kind, rows)
  }

  @Test(arguments: Ground.Kind.here) func `space is allotted as zeros, and the size grows unless it is to stay`(
    kind: Ground.Kind
  ) throws {
    let plot = try Plot.on(kind)
    let file = try Handle(plot("file"), O_CREAT | O_RDWR)
    try file.write("head")
    try file.change(RangeChange.keepSize, 0, Self.large)
    #expect(try file.stat().size == 4)
    try file.change(RangeChange.allocate, 2, 1)
    #expect(try file.text == "head")
    try file.change(RangeChange.allocate, 10, 100_000)
    #expect(try file.stat().size == 100_010)
    #expect(try file.readAll() == Array("head".utf8) + [UInt8](repeating: 0, count: 100_006))
    try CallError.check(posix_fallocate(file.number, 0, Self.large))
    #expect(try file.stat().size == Self.large)
  }

  @Test(arguments: Ground.Kind.here) func `a punched hole reads as zeros, keeps the size and gives the space back`(
    kind: Ground.Kind
  ) throws {
    let plot = try Plot.on(kind)
    let file = try Handle(plot("file"), O_CREAT | O_RDWR)
    var expected = noise(4 * Self.large)
    try file.writeAll(expected)
    try file.sync()
    let blocks = try file.stat().blocks
    let ranges = [
      (Self.large, 2 * Self.large), (5, 10), (4090, 12), (100_000, 1), (3_999_999, 10_000_000), (70_001, 65_537),
    ]
    for (offset, count) in ranges {
      try file.change(RangeChange.punchHole | RangeChange.keepSize, offset, count)
      let end = min(offset + count, expected.count)
      expected.replaceSubrange(offset..<end, with: [UInt8](repeating: 0, count: end - offset))
      #expect(try firstDifference(file.readAll(), expected) == nil, "\(offset), \(count)")
      #expect(try file.stat().size == 4 * Self.large)
    }
    try file.sync()
    #expect(try file.stat().blocks <= blocks - 3 * Self.large / 2 / 512)
    // A hole beyond the end changes nothing.
    try file.change(RangeChange.punchHole | RangeChange.keepSize, 8 * Self.large, 10)
    #expect(try file.stat().size == 4 * Self.large)
    // What is written into a hole is there, and around it are zeros.
    try file.write("island", at: 2 * Self.large)
    expected.replaceSubrange(2 * Self.large..<2 * Self.large + 6, with: Array("island".utf8))
    #expect(try firstDifference(Kernel.content(plot("file")), expected) == nil)
  }

  @Test(arguments: Ground.Kind.here) func `a range is made zeros, and the size grows unless it is to stay`(
    kind: Ground.Kind
  ) throws {
    let plot = try Plot.on(kind)
    let file = try Handle(plot("file"), O_CREAT | O_RDWR)
    var expected = noise(200_000)
    try file.writeAll(expected)
    do {
      try file.change(RangeChange.zero, 5, 10)
    } catch let error as CallError where error.number == EOPNOTSUPP && !plot.isMount {
      // Not every plain file system can.
      return
    }
    expected.replaceSubrange(5..<15, with: [UInt8](repeating: 0, count: 10))
    for (flags, offset, count) in [
      (RangeChange.zero, 4090, 70_000), (RangeChange.zero | RangeChange.keepSize, 150_000, 100_000),
      (RangeChange.zero, 190_000, 20_000), (RangeChange.zero, 300_000, 5),
      (RangeChange.zero | RangeChange.keepSize, 400_000, 5),
    ] {
      try file.change(flags, offset, count)
      if flags == RangeChange.zero, offset + count > expected.count {
        expected += [UInt8](repeating: 0, count: offset + count - expected.count)
      }
      let range = min(offset, expected.count)..<min(offset + count, expected.count)
      expected.replaceSubrange(range, with: [UInt8](repeating: 0, count: range.count))
      #expect(try firstDifference(file.readAll(), expected) == nil, "\(flags), \(offset), \(count)")
      #expect(try file.stat().size == expected.count)
    }
  }

  @Test(arguments: Ground.Kind.here) func `a sparse file takes no space where it has nothing`(kind: Ground.Kind) throws
  {
    let plot = try Plot.on(kind)
    let file = try Handle(plot("file"), O_CREAT | O_RDWR)
    try file.truncate(to: 1 << 40)
    #expect(try file.stat().size == 1 << 40 && file.stat().blocks <= 8)
    try file.write(noise(Self.large), at: 1 << 35)
    try file.write("end", at: (1 << 40) - 3)
    try file.sync()
    let stat = try Kernel.stat(plot("file"))
    #expect(stat.size == 1 << 40)
    #expect(stat.blocks >= Self.large / 512 && stat.blocks < 3 * Self.large / 512)
    #expect(try file.read(100, at: (1 << 40) - 100) == [UInt8](repeating: 0, count: 97) + Array("end".utf8))
    #expect(try file.read(Self.large, at: 1 << 35) == noise(Self.large))
    #expect(try file.read(4096, at: 1 << 34) == [UInt8](repeating: 0, count: 4096))
    try file.truncate(to: 0)
    try file.sync()
    #expect(try file.stat().blocks <= 8 && file.stat().size == 0)
  }

  @Test(arguments: Ground.Kind.here) func `blocks rise with what is written, and are the same by every call`(
    kind: Ground.Kind
  ) throws {
    let plot = try Plot.on(kind)
    for count in [0, 1, 100, 5000, 100_000, Self.large] {
      let file = try Handle(plot("\(count)"), O_CREAT | O_RDWR)
      try file.writeAll(noise(count))
      try file.sync()
      let stat = try file.stat()
      #expect(stat.size == count)
      #expect(count < 5000 || stat.blocks * 512 >= count, "\(count)")
      #expect(stat.blocks * 512 <= 2 * count + (64 << 10), "\(count)")
      #expect(try Kernel.stat(plot("\(count)")).blocks == stat.blocks, "\(count)")
      #expect(try StatX(plot("\(count)")).stat == stat)
    }
    // What is written over takes no more room, before it is stored and after.
    let path = plot("\(Self.large)")
    let before = try Kernel.stat(path).blocks
    let file = try Handle(path, O_RDWR)
    for place in stride(from: 100, to: Self.large - 100, by: 70_000) { try file.write(noise(10), at: place) }
    #expect(try file.stat().blocks == before)
    try file.sync()
    #expect(try file.stat().blocks == before)
    let folder = try Kernel.stat(plot.path)
    #expect(try StatX(plot.path).stat == folder)
  }

  @Test(arguments: Ground.Kind.here) func `lseek finds data and holes`(kind: Ground.Kind) throws {
    let plot = try Plot.on(kind)
    let file = try Handle(plot("file"), O_CREAT | O_RDWR)
    let size = 16 * Self.large
    try file.truncate(to: size)
    for start in [2 * Self.large, 9 * Self.large] { try file.write(noise(Self.large), at: start) }
    try file.sync()
    // Where a hole or data is at most as coarse as this, whatever the size of a block.
    let grain = 64 << 10
    func find(_ what: CInt, _ offset: Int) throws -> Int { try file.seek(offset, what) }
    for (from, data) in [(0, 2), (1, 2), (2, 2), (4, 9), (9, 9)] {
      let found = try find(GNU.seekData, from * Self.large)
      #expect(found <= data * Self.large && found > data * Self.large - grain, "data from \(from)")
    }
    for (from, hole) in [(2, 3), (9, 10)] {
      let found = try find(GNU.seekHole, from * Self.large)
      #expect(found >= hole * Self.large && found < hole * Self.large + grain, "hole from \(from)")
    }
    #expect(try find(GNU.seekHole, 0) == 0)
    #expect(try find(GNU.seekHole, 5 * Self.large + 7) == 5 * Self.large + 7)
    #expect(try find(GNU.seekHole, size - 1) == size - 1)
    #expect(try find(GNU.seekData, 2 * Self.large + 100) == 2 * Self.large + 100)
    // The position is where it was found.
    #expect(try file.seek(0, SEEK_CUR) == 2 * Self.large + 100)
    #expect(outcome { _ = try find(GNU.seekData, 11 * Self.large) } == CallError(ENXIO))
    for what in [GNU.seekData, GNU.seekHole] {
      for offset in [size, size + 1, 1 << 50, -1] {
        #expect(outcome { _ = try find(what, offset) } == CallError(ENXIO), "\(what) from \(offset)")
      }
    }
    // A file without a hole has one, at its end.
    try Kernel.makeFile(plot("full"), noise(100_000))
    let full = try Handle(plot("full"), O_RDONLY)
    #expect(try full.seek(0, GNU.seekHole) == 100_000 && full.seek(99_999, GNU.seekData) == 99_999)
    #expect(outcome { try full.seek(100_000, GNU.seekData) } == CallError(ENXIO))
    #expect(try full.seek(-10, SEEK_END) == 99_990 && full.seek(20, SEEK_CUR) == 100_010)
    try Kernel.makeFile(plot("empty"))
    #expect(outcome { try Kernel.open(plot("empty"), O_RDONLY).seek(0, GNU.seekHole) } == CallError(ENXIO))
  }

  @Test(arguments: Ground.Kind.here) func `what was just written is data, and what was just made a hole is one`(
    kind: Ground.Kind
  ) throws {
    let plot = try Plot.on(kind)
    for count in [1, 5000, 300_000] {
      let file = try Handle(plot("\(count)"), O_CREAT | O_RDWR)
      try file.write(noise(count), at: 0)
      #expect(try file.seek(0, GNU.seekData) == 0, "\(count)")
      #expect(try file.seek(0, GNU.seekHole) == count, "\(count)")
      try file.write(noise(count), at: 4 * Self.large)
      let map = try Mapping(of: file, count: 4 * Self.large)
      map[2 * Self.large] = 1
      for start in [2 * Self.large, 4 * Self.large] {
        let reader = try Handle(plot("\(count)"), O_RDONLY)
        #expect(try reader.seek(start, GNU.seekData) == start, "\(count)")
      }
      #expect(try file.stat().blocks > 0, "\(count)")
    }
  }
}
