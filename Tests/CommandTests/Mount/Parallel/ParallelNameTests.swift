import Glibc
import Testing

/// Names that many change at once.
@Suite struct ParallelNameTests {
  private static let count = 6

  @Test(arguments: Ground.Kind.here) func `one of many that make the same name makes it`(kind: Ground.Kind) throws {
    let plot = try Plot.on(kind)
    let makers: [@Sendable (String) throws -> Void] = [
      { try Kernel.open($0, O_CREAT | O_EXCL | O_WRONLY) }, { try Kernel.mkdir($0) },
      { try Kernel.symlink("x", at: $0) }, { try Kernel.makeNode($0, S_IFIFO) },
    ]
    for (number, make) in makers.enumerated() {
      for round in 0..<40 {
        let errors = try inParallel(Self.count) { _ in outcome { try make(plot("\(number)-\(round)")) } }
        #expect(errors.filter { $0 == nil }.count == 1)
        #expect(errors.filter { $0 == CallError(EEXIST) }.count == Self.count - 1)
      }
    }
    #expect(try Kernel.names(plot.path).count == 40 * makers.count)
  }

  @Test(arguments: Ground.Kind.here) func `one of many that remove or move a name does it`(kind: Ground.Kind) throws {
    let plot = try Plot.on(kind)
    for round in 0..<40 {
      try Kernel.makeFile(plot("file"))
      try Kernel.mkdir(plot("folder"))
      for remove in [{ try Kernel.unlink(plot("file")) }, { try Kernel.rmdir(plot("folder")) }]
        as [@Sendable () throws -> Void]
      {
        let errors = try inParallel(Self.count) { _ in outcome(remove) }
        #expect(errors.filter { $0 == nil }.count == 1)
        #expect(errors.filter { $0 == CallError(ENOENT) }.count == Self.count - 1)
      }
      try Kernel.makeFile(plot("file"))
      let errors = try inParallel(Self.count) { number in
        outcome { try Kernel.rename(plot("file"), plot("\(round)-\(number)")) }
      }
      #expect(errors.filter { $0 == nil }.count == 1)
    }
    #expect(try Kernel.names(plot.path).count == 40)
  }

  @Test(arguments: Ground.Kind.here) func `a name that is replaced over and over is always there, and whole`(
    kind: Ground.Kind
  ) throws {
    let plot = try Plot.on(kind)
    try Kernel.makeFile(plot("file"), [UInt8](repeating: 0, count: 10_000))
    try inParallel(4) { number in
      if number < 2 {
        for round in 0..<60 {
          try Kernel.makeFile(plot("new-\(number)"), [UInt8](repeating: UInt8(round), count: 10_000))
          try Kernel.rename(plot("new-\(number)"), plot("file"))
        }
      } else {
        for _ in 0..<200 {
          let content = try Kernel.content(plot("file"))
          guard content.count == 10_000, Set(content).count == 1 else { throw CallError(EIO) }
        }
      }
    }
    #expect(try Kernel.names(plot.path) == ["file"])
  }

  @Test(arguments: Ground.Kind.here) func `two names that are exchanged over and over are always both there`(
    kind: Ground.Kind
  ) throws {
    let plot = try Plot.on(kind)
    try Kernel.mkdir(plot("one"))
    try Kernel.mkdir(plot("two"))
    try Kernel.makeFile(plot("one/a"), "a")
    try Kernel.makeFile(plot("two/b"), "b")
    try inParallel(4) { number in
      for _ in 0..<80 {
        switch number {
        case 0: try Kernel.rename(plot("one/a"), plot("two/b"), flags: RenameFlag.exchange)
        case 1: try Kernel.rename(plot("two/b"), plot("one/a"), flags: RenameFlag.exchange)
        default:
          guard ["a", "b"].contains(try Kernel.text(plot("one/a"))) else { throw CallError(EIO) }
          guard ["a", "b"].contains(try Kernel.text(plot("two/b"))) else { throw CallError(EIO) }
        }
      }
    }
    #expect(try Set([Kernel.text(plot("one/a")), Kernel.text(plot("two/b"))]) == ["a", "b"])
  }

  @Test(arguments: Ground.Kind.here) func `link counts are right after many linked and unlinked`(
    kind: Ground.Kind
  ) throws {
    let plot = try Plot.on(kind)
    try Kernel.makeFile(plot("file"))
    for number in 0..<Self.count { try Kernel.mkdir(plot("\(number)")) }
    try inParallel(Self.count) { number in
      for round in 0..<50 {
        try Kernel.link(plot("file"), plot("\(number)/\(round)"))
        try Kernel.mkdir(plot("\(number)/folder-\(round)"))
        try Kernel.rename(plot("\(number)/folder-\(round)"), plot("\((number + 1) % Self.count)/\(number)-\(round)"))
        if round.isMultiple(of: 2) { try Kernel.unlink(plot("\(number)/\(round)")) }
      }
    }
    #expect(try Kernel.stat(plot("file")).links == 1 + Self.count * 25)
    for number in 0..<Self.count { #expect(try Kernel.stat(plot("\(number)")).links == 52) }
    #expect(try Kernel.stat(plot.path).links == 2 + Self.count)
  }

  @Test(arguments: Ground.Kind.here) func `folders that move into each other never make a circle`(
    kind: Ground.Kind
  ) throws {
    let plot = try Plot.on(kind)
    for round in 0..<60 {
      try Kernel.mkdir(plot("one"))
      try Kernel.mkdir(plot("two"))
      let errors = try inParallel(2) { number in
        let (from, to) = number == 0 ? ("one", "two") : ("two", "one")
        return outcome { try Kernel.rename(plot(from), plot("\(to)/in")) }
      }
      #expect(errors.filter { $0 == nil }.count == 1, "\(round)")
      let outer = errors[0] == nil ? "two" : "one"
      try Kernel.rmdir(plot("\(outer)/in"))
      try Kernel.rmdir(plot(outer))
    }
    #expect(try Kernel.names(plot.path) == [])
  }
}
