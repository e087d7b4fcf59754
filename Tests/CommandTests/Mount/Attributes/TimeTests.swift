import Glibc
import Testing

/// utimensat(2) and futimens(3).
@Suite struct TimeTests {
  @Test(arguments: Ground.Kind.here) func `times are kept to the nanosecond, for every kind of node`(
    kind: Ground.Kind
  ) throws {
    let plot = try Plot.on(kind)
    try plot.furnish()
    try Kernel.makeNode(plot("socket"), S_IFSOCK)
    let times = [
      (Moment(0, 0), Moment(0, 1)), (Moment(1_234_567_890, 123_456_789), Moment(987_654_321, 999_999_999)),
      (Moment(-1, 999_999_999), Moment(-1_000_000_000, 1)), (Moment(1 << 31, 5), Moment((1 << 31) - 1, 999_999_999)),
      (Moment(1 << 32, 7), Moment(4_102_444_800, 8)),
    ]
    for name in ["file", "empty", "folder", "to-file", "dangling", "fifo", "socket"] {
      for (accessed, modified) in times {
        try Kernel.setTimes(plot(name), accessed: accessed, modified: modified)
        let stat = try Kernel.stat(plot(name))
        #expect(stat.accessed == accessed && stat.modified == modified, "\(name)")
      }
      // One of them alone.
      try Kernel.setTimes(plot(name), modified: Moment(11, 12))
      try Kernel.setTimes(plot(name), accessed: Moment(13, 14))
      let stat = try Kernel.stat(plot(name))
      #expect(stat.accessed == Moment(13, 14) && stat.modified == Moment(11, 12), "\(name)")
      // The present for one, nothing for the other.
      try Kernel.setTimes(plot(name), modified: .now)
      let touched = try Kernel.stat(plot(name))
      #expect(touched.accessed == Moment(13, 14) && touched.modified >= stat.changed, "\(name)")
      #expect(touched.changed >= stat.changed, "\(name)")
    }
    try Kernel.setTimes(plot("to-file"), accessed: Moment(1, 2), modified: Moment(3, 4), following: true)
    #expect(try Kernel.stat(plot("again")).modified == Moment(3, 4))
    #expect(try Kernel.stat(plot("to-file")).modified != Moment(3, 4))
    let file = try Handle(plot("empty"), O_RDONLY)
    try file.setTimes(accessed: Moment(5, 6), modified: Moment(7, 8))
    #expect(try Kernel.stat(plot("empty")).accessed == Moment(5, 6) && file.stat().modified == Moment(7, 8))
  }

  @Test(arguments: Ground.Kind.here) func `times that were set outlast the writes that came before`(
    kind: Ground.Kind
  ) throws {
    let plot = try Plot.on(kind)
    for count in [5, 100_000] {
      let path = plot("\(count)")
      let file = try Handle(path, O_CREAT | O_RDWR)
      try file.writeAll(noise(count))
      try file.setTimes(accessed: Moment(100, 1), modified: Moment(200, 2))
      try file.sync()
      #expect(try Kernel.stat(path).modified == Moment(200, 2))
      try file.write("x", at: 3)
      try Kernel.setTimes(path, accessed: Moment(300, 3), modified: Moment(400, 4))
      #expect(try file.stat().modified == Moment(400, 4))
    }
    // Closing writes nothing that would count as a change.
    for count in [5, 100_000] {
      #expect(try Kernel.stat(plot("\(count)")).modified == Moment(400, 4))
      #expect(try Handle(plot("\(count)"), O_RDWR).stat().modified == Moment(400, 4))
    }
  }

  /// What a program stores to a mapping comes later than it was stored, and a time that was set since is the file's.
  @Test(arguments: Ground.Kind.here) func `times that were set outlast what was stored to a mapping before`(
    kind: Ground.Kind
  ) throws {
    let plot = try Plot.on(kind)
    for isByHandle in [true, false] {
      let path = plot("\(isByHandle)")
      try Kernel.makeFile(path, noise(100_000))
      let file = try Handle(path, O_RDWR)
      var map: Mapping? = try Mapping(of: file, count: 100_000)
      map?[70_000] = 1
      if isByHandle {
        try file.setTimes(accessed: Moment(100, 1), modified: Moment(200, 2))
      } else {
        try Kernel.setTimes(path, accessed: Moment(100, 1), modified: Moment(200, 2))
      }
      try map?.sync()
      map = nil
      try file.sync()
      #expect(try file.stat().modified == Moment(200, 2), "\(isByHandle)")
      #expect(try file.read(1, at: 70_000) == [1])
      // What is stored afterwards is a change.
      map = try Mapping(of: file, count: 100_000)
      map?[70_001] = 2
      try map?.sync()
      map = nil
      #expect(try file.stat().modified > Moment(200, 2), "\(isByHandle)")
    }
  }

  @Test(arguments: Ground.Kind.here) func `it refuses what its manual page says`(kind: Ground.Kind) throws {
    func give(_ path: String, _ accessed: Int, _ modified: Int) throws {
      try Kernel.setTimes(path, accessed: Moment(1, accessed), modified: Moment(1, modified))
    }
    try Refused.all(
      on: kind,
      [
        Refused("a second in nanoseconds", EINVAL) { try give($0("file"), 1_000_000_000, 0) },
        Refused("less than no nanoseconds", EINVAL) { try give($0("file"), 0, -1) },
        Refused("nothing", ENOENT) { try give($0("missing"), 0, 0) },
        Refused("below a file", ENOTDIR) { try give($0("file/x"), 0, 0) },
        Refused("a link to nothing, followed", ENOENT) {
          try Kernel.setTimes($0("dangling"), modified: Moment(1, 1), following: true)
        },
        Refused("a link to itself, followed", ELOOP) {
          try Kernel.setTimes($0("loop"), modified: Moment(1, 1), following: true)
        },
      ])
  }
}
