import Glibc
import Testing

/// copy_file_range(2).
@Suite struct CopyRangeTests {
  @Test(arguments: Ground.Kind.here) func `it refuses what its manual page says`(kind: Ground.Kind) throws {
    func row(
      _ what: String, _ error: CInt, _ source: (String, CInt) = ("file", O_RDONLY),
      _ target: (String, CInt) = ("empty", O_RDWR), at offset: Int = 0, to place: Int = 0, count: Int = 4,
      flags: CUnsignedInt = 0
    ) -> Refused {
      Refused(what, error) { plot in
        let from = try Kernel.open(plot(source.0), source.1)
        try Kernel.open(plot(target.0), target.1).copy(count, from: from, at: offset, to: place, flags: flags)
      }
    }
    try Refused.all(
      on: kind,
      [
        row("from a file that is open for writing", EBADF, ("file", O_WRONLY)),
        row("to a file that is open for reading", EBADF, ("file", O_RDONLY), ("empty", O_RDONLY)),
        row("to a file that is open for appending", EBADF, ("file", O_RDONLY), ("empty", O_RDWR | O_APPEND)),
        row("from a folder", EISDIR, ("folder", O_RDONLY)),
        row("from a fifo", EINVAL, ("fifo", O_RDWR)),
        row("to a fifo", EINVAL, ("file", O_RDONLY), ("fifo", O_RDWR)),
        row("with flags", EINVAL, flags: 1),
        row("over itself", EINVAL, ("file", O_RDONLY), ("file", O_RDWR), at: 0, to: 2),
        row("over itself by another name", EINVAL, ("file", O_RDONLY), ("again", O_RDWR), at: 3, to: 1),
        row("to beyond the largest offset", EFBIG, to: .max),
      ])
  }

  @Test(arguments: Ground.Kind.here) func `bytes are copied within the kernel, and no more than there are`(
    kind: Ground.Kind
  ) throws {
    let plot = try Plot.on(kind)
    try Kernel.makeFile(plot("source"), noise(300_000))
    let source = try Handle(plot("source"), O_RDWR)
    let target = try Handle(plot("target"), O_CREAT | O_RDWR)
    func copyAll(_ count: Int, from source: Handle, at offset: Int, to place: Int) throws -> Int {
      var done = 0
      while done < count {
        let part = try target.copy(count - done, from: source, at: offset + done, to: place + done)
        if part == 0 { break }
        done += part
      }
      return done
    }
    var expected: [UInt8] = []
    for (offset, count, place) in [
      (0, 300_000, 0), (100, 50_000, 7), (299_990, 100, 1000), (0, 10, 400_000), (300_000, 5, 0), (500_000, 5, 0),
      (4096, 131_072, 65_536),
    ] {
      let bytes = Array(noise(300_000).dropFirst(offset).prefix(count))
      #expect(try copyAll(count, from: source, at: offset, to: place) == bytes.count, "\(offset), \(count)")
      if !bytes.isEmpty {
        expected += [UInt8](repeating: 0, count: max(0, place + bytes.count - expected.count))
        expected.replaceSubrange(place..<(place + bytes.count), with: bytes)
      }
      #expect(try firstDifference(target.readAll(), expected) == nil, "\(offset), \(count), \(place)")
    }
    // Within one file, beside itself.
    #expect(try copyAll(1000, from: Handle(plot("target"), O_RDONLY), at: 0, to: 1000) == 1000)
    expected.replaceSubrange(1000..<2000, with: expected[..<1000])
    #expect(try firstDifference(target.readAll(), expected) == nil)
    // What was just written and is in no store yet is copied as well.
    try source.write("fresh", at: 10)
    #expect(try copyAll(20, from: source, at: 0, to: 0) == 20)
    #expect(try Array(target.readAll()[10..<15]) == Array("fresh".utf8))
    let map = try Mapping(of: source, count: 4096)
    map[0] = 0x21
    #expect(try copyAll(1, from: source, at: 0, to: 0) == 1)
    #expect(try target.read(1, at: 0) == [0x21])
  }

  @Test(arguments: Ground.Kind.here) func `without offsets the positions are used and moved`(kind: Ground.Kind) throws {
    let plot = try Plot.on(kind)
    try Kernel.makeFile(plot("source"), "0123456789")
    let source = try Handle(plot("source"), O_RDONLY)
    let target = try Handle(plot("target"), O_CREAT | O_RDWR)
    try source.seek(3)
    try target.seek(1)
    #expect(try CallError.check(GNU.copyRange(source.number, nil, target.number, nil, 4, 0)) == 4)
    #expect(try source.seek(0, SEEK_CUR) == 7 && target.seek(0, SEEK_CUR) == 5)
    #expect(try target.readAll() == [0] + Array("3456".utf8))
    #expect(try CallError.check(GNU.copyRange(source.number, nil, target.number, nil, 100, 0)) == 3)
    #expect(try CallError.check(GNU.copyRange(source.number, nil, target.number, nil, 100, 0)) == 0)
    #expect(try target.readAll() == [0] + Array("3456789".utf8))
  }

  @Test(.enabled(if: Ground.mountIsThere, Ground.missing), arguments: [0, 6 << 20])
  func `a copy that cannot go on is done as far as it says, and the mount shows what is stored`(_ former: Int) throws {
    let ground = try Ground(.mount)
    let (source, target) = (ground.path + "/source", ground.path + "/target")
    let content = noise(5 << 20)
    try ground.desk.served("put", "-", "/source", input: content)
    try ground.desk.damageLargestObject()
    try Kernel.makeFile(target, noise(former, seed: 2))
    let (from, to) = try (Handle(source, O_RDONLY), Handle(target, O_RDWR))
    #expect(try to.readAll() == noise(former, seed: 2))
    var done = 0
    let error = #expect(throws: CallError.self) {
      while true { done += try to.copy(content.count - done, from: from, at: done, to: done) }
    }
    #expect(error?.number == EIO)
    #expect(done > 0 && done < content.count)
    try to.sync()
    let stored = try ground.desk.served("cat", "/target").bytes
    #expect(stored.count == max(done, former) && stored[..<done].elementsEqual(content[..<done]))
    #expect(try firstDifference(Kernel.content(target), stored) == nil)
    #expect(try to.stat().size == stored.count)
  }
}
