import Glibc
import Synchronization
import Testing

/// Files that a program opens for writing only. A mount may bring what is written so past the kernel's pages; nobody is to tell, in
/// any order of opening, reading, mapping and writing.
@Suite struct WriteOnlyTests {
  private static let page = 4096

  /// - Parameter isNew: the program that writes has made the file.
  @Test(arguments: Ground.Kind.here, [false, true]) func `each write is seen by whoever reads or maps the file`(
    kind: Ground.Kind, isNew: Bool
  ) throws {
    let plot = try Plot.on(kind)
    if !isNew { try Kernel.makeFile(plot("file")) }
    let writer = try Handle(plot("file"), O_CREAT | O_WRONLY)
    var expected = noise(3 * Self.page + 7)
    try writer.writeAll(expected)
    // Pages of readers who came later, and of one who has gone.
    #expect(try Kernel.content(plot("file")) == expected)
    let reader = try Handle(plot("file"), O_RDONLY)
    let map = try Mapping(of: reader, count: 4 * Self.page, access: PROT_READ)
    for round in 0..<60 {
      let bytes = Array("round \(round)".utf8)
      // Within pages, across their edges, and beyond the end.
      let offset = (round * 977) % expected.count
      try writer.write(bytes, at: offset)
      if offset + bytes.count > expected.count {
        expected += [UInt8](repeating: 0, count: offset + bytes.count - expected.count)
      }
      expected.replaceSubrange(offset..<(offset + bytes.count), with: bytes)
      #expect(try reader.read(bytes.count, at: offset) == bytes, "round \(round)")
      #expect(map[offset..<min(offset + bytes.count, map.count)] == Array(bytes.prefix(map.count - offset)))
      #expect(try reader.stat().size == expected.count)
      if round % 10 == 0 { #expect(try firstDifference(reader.readAll(), expected) == nil, "round \(round)") }
    }
    try writer.truncate(to: 100)
    #expect(try reader.readAll() == Array(expected[..<100]))
    try writer.write("again", at: 200)
    #expect(try reader.readAll() == Array(expected[..<100]) + [UInt8](repeating: 0, count: 100) + Array("again".utf8))
  }

  /// Newer kernels, as Linux 6.18.44, see to it by themselves.
  @Test(arguments: Ground.Kind.here) func `a read that meets a write leaves no page behind that is old`(
    kind: Ground.Kind
  ) throws {
    let plot = try Plot.on(kind)
    let writer = try Handle(plot("file"), O_CREAT | O_WRONLY)
    try writer.writeAll([UInt8](repeating: 0, count: Self.page))
    let isDone = Atomic(false)
    try inParallel(3) { number in
      let reader = try Handle(plot("file"), O_RDONLY)
      guard number == 0 else {
        while !isDone.load(ordering: .relaxed) { _ = try reader.read(Self.page, at: 0) }
        return
      }
      defer { isDone.store(true, ordering: .relaxed) }
      for round in 1...3000 {
        let bytes = [UInt8](repeating: UInt8(truncatingIfNeeded: round), count: Self.page)
        try writer.write(bytes, at: 0)
        guard try reader.read(Self.page, at: 0) == bytes else { throw CallError(ESTALE) }
      }
    }
  }

  @Test(arguments: Ground.Kind.here) func `what goes to a mapping and to who only writes is all kept`(
    kind: Ground.Kind
  ) throws {
    let plot = try Plot.on(kind)
    let count = 4 * Self.page
    let writer = try Handle(plot("file"), O_CREAT | O_WRONLY)
    var expected = noise(count)
    try writer.writeAll(expected)
    let other = try Handle(plot("file"), O_RDWR)
    let map = try Mapping(of: other, count: count)
    for round in 0..<200 {
      let offset = (round * 131) % (count - 3)
      (map[offset], expected[offset]) = (UInt8(round), UInt8(round))
      try writer.write([UInt8(round), 1], at: offset + 1)
      expected.replaceSubrange((offset + 1)...(offset + 2), with: [UInt8(round), 1])
      #expect(map[offset..<(offset + 3)] == Array(expected[offset..<(offset + 3)]), "round \(round)")
      try other.write([2], at: (offset * 7) % count)
      expected[(offset * 7) % count] = 2
    }
    #expect(firstDifference(map.bytes, expected) == nil)
    #expect(try firstDifference(Kernel.content(plot("file")), expected) == nil)
  }

  @Test(arguments: Ground.Kind.here) func `no write is lost beside a mapping of the same page that is stored to`(
    kind: Ground.Kind
  ) throws {
    let plot = try Plot.on(kind)
    let writer = try Handle(plot("file"), O_CREAT | O_WRONLY)
    try writer.writeAll([UInt8](repeating: 0, count: Self.page))
    let map = try Mapping(of: Kernel.open(plot("file"), O_RDWR), count: Self.page)
    let isDone = Atomic(false)
    try inParallel(2) { number in
      guard number == 0 else {
        var count: UInt8 = 0
        while !isDone.load(ordering: .relaxed) {
          count &+= 1
          map[0] = count
          // Nor a store: nobody else writes there.
          guard map[0] == count else { throw CallError(ENODATA) }
        }
        return
      }
      defer { isDone.store(true, ordering: .relaxed) }
      for round in 1...2000 {
        let bytes = [UInt8(truncatingIfNeeded: round), UInt8(truncatingIfNeeded: round >> 8)]
        try writer.write(bytes, at: 2048)
        guard map[2048..<2050] == bytes else { throw CallError(ESTALE) }
      }
    }
    #expect(try Kernel.content(plot("file")) == map.bytes)
  }

  @Test(arguments: Ground.Kind.here) func `what is appended lands at the end, whoever else writes there`(
    kind: Ground.Kind
  ) throws {
    let plot = try Plot.on(kind)
    let one = try Handle(plot("log"), O_CREAT | O_WRONLY | O_APPEND)
    var expected = ""
    for round in 0..<50 {
      try one.write("one \(round)\n")
      let two = try Handle(plot("log"), round % 2 == 0 ? O_RDWR | O_APPEND : O_WRONLY | O_APPEND)
      try two.write("two \(round)\n")
      expected += "one \(round)\ntwo \(round)\n"
      #expect(try Kernel.text(plot("log")) == expected)
    }
  }

  @Test(arguments: Ground.Kind.here) func `bytes come from a mapping, from many pieces, and from nowhere`(
    kind: Ground.Kind
  ) throws {
    let plot = try Plot.on(kind)
    try Kernel.makeFile(plot("source"), noise(2 * Self.page))
    let source = try Mapping(of: Kernel.open(plot("source"), O_RDONLY), count: 2 * Self.page, access: PROT_READ)
    let writer = try Handle(plot("file"), O_CREAT | O_WRONLY)
    try source.withUnsafeBytes { bytes in
      #expect(pwrite(writer.number, bytes.baseAddress! + 1, 5000, 3) == 5000)
      // More pieces than one request holds pages.
      let pieces = (0..<1000).map { iovec(iov_base: .init(mutating: bytes.baseAddress! + $0 * 8), iov_len: 7) }
      #expect(pwritev(writer.number, pieces, 1000, 5003) == 7000)
      // Of a file's own mapping.
      let own = try Mapping(of: Kernel.open(plot("file"), O_RDONLY), count: Self.page, access: PROT_READ)
      own.withUnsafeBytes { #expect(pwrite(writer.number, $0.baseAddress!, Self.page, 12_003) == Self.page) }
    }
    #expect(pwrite(writer.number, UnsafeRawPointer(bitPattern: 1), 10, 0) == -1 && errno == EFAULT)
    #expect(pwrite(writer.number, [1], 0, 0) == 0)
    var expected = [0, 0, 0] + Array(noise(2 * Self.page)[1..<5001])
    for number in 0..<1000 { expected += noise(2 * Self.page)[(number * 8)..<(number * 8 + 7)] }
    expected += Array(expected[..<Self.page])
    #expect(try firstDifference(Kernel.content(plot("file")), expected) == nil)
  }

  /// Nor plaintext of it.
  @Test(.enabled(if: Ground.mountIsThere, Ground.missing))
  func `of what was only written the kernel keeps no page`() throws {
    let plot = try Plot.on(.mount)
    try Kernel.makeFile(plot("file"), noise(50 * Self.page))
    let map = try Mapping(of: Kernel.open(plot("file"), O_RDONLY), count: 50 * Self.page, access: PROT_READ)
    #expect(try map.residentPageCount() == 0)
    #expect(firstDifference(map.bytes, noise(50 * Self.page)) == nil)
    #expect(try map.residentPageCount() == 50)
  }

  /// Whoever reads a long file while something is appended to it finds the rest of it in the kernel's memory.
  @Test(.enabled(if: Ground.mountIsThere, Ground.missing))
  func `what a program writes past the pages takes away no more of them than it writes`() throws {
    let plot = try Plot.on(.mount)
    var bytes = noise(50 * Self.page)
    try Kernel.makeFile(plot("file"), bytes)
    // Opened before there is a page.
    let writer = try Handle(plot("file"), O_WRONLY)
    let appender = try Handle(plot("file"), O_WRONLY | O_APPEND)
    let map = try Mapping(of: Kernel.open(plot("file"), O_RDONLY), count: 50 * Self.page, access: PROT_READ)
    #expect(firstDifference(map.bytes, bytes) == nil)
    for _ in 0..<20 {
      try writer.write([7, 7], at: 7 * Self.page + 100)
      try appender.write([8])
    }
    bytes.replaceSubrange((7 * Self.page + 100)..<(7 * Self.page + 102), with: [7, 7])
    #expect(try map.residentPageCount() >= 48)
    #expect(firstDifference(map.bytes, bytes) == nil)
    bytes += [UInt8](repeating: 8, count: 20)
    #expect(try firstDifference(Kernel.content(plot("file")), bytes) == nil)
  }

  @Test(.enabled(if: Person.canBeAnother, Person.needsRoot), arguments: Ground.Kind.here)
  func `capabilities of a file go with each write, also of root's`(kind: Ground.Kind) throws {
    let plot = try Plot.on(kind)
    // VFS_CAP_REVISION_2: CAP_NET_RAW, permitted and effective.
    let capabilities: [UInt8] = [1, 0, 0, 2, 0, 32] + [UInt8](repeating: 0, count: 14)
    func set(_ path: String) throws -> Bool {
      try Kernel.setAttribute(path, "security.capability", capabilities)
      return try Kernel.attribute(path, "security.capability") == capabilities
    }
    func areGone(_ path: String) -> Bool {
      outcome { _ = try Kernel.attribute(path, "security.capability") } == CallError(ENODATA)
    }
    let writer = try Handle(plot("file"), O_CREAT | O_WRONLY)
    for round in 0..<3 {
      #expect(try set(plot("file")))
      try writer.write("x")
      #expect(areGone(plot("file")), "round \(round)")
      try writer.write("y")
    }
    // One that was not open.
    try Kernel.makeFile(plot("tool"))
    #expect(try set(plot("tool")))
    try Handle(plot("tool"), O_WRONLY).write("x")
    #expect(areGone(plot("tool")))
  }
}
