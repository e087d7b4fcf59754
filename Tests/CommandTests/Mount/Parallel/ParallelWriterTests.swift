import CofferTestSupport
import Foundation
import Glibc
import Testing

/// The integrity of what many write at once.
@Suite struct ParallelWriterTests {
  private static let writers = 6

  @Test(arguments: Ground.Kind.here) func `each of many that write parts of a file finds its part`(
    kind: Ground.Kind
  ) throws {
    let plot = try Plot.on(kind)
    let size = 3 << 20
    try Kernel.makeFile(plot("file"))
    // The parts of all are mixed, and begin and end within pages and blocks; every other writer writes through memory.
    let pieceSize = 5003
    try Handle(plot("file"), O_RDWR).truncate(to: size)
    try inParallel(Self.writers) { writer in
      let file = try Handle(plot("file"), O_RDWR)
      let map = writer.isMultiple(of: 2) ? nil : try Mapping(of: file, count: size)
      for start in stride(from: writer * pieceSize, to: size, by: Self.writers * pieceSize) {
        let count = min(pieceSize, size - start)
        let bytes = noise(count, seed: UInt64(start))
        if let map { map[start..<(start + count)] = bytes } else { try file.write(bytes, at: start) }
        // It is there for its writer at once, whatever others do around it.
        guard try file.read(count, at: start) == bytes else { throw CallError(EIO) }
      }
      if writer == 0 { try file.sync() }
    }
    let content = try Kernel.content(plot("file"))
    #expect(content.count == size)
    for start in stride(from: 0, to: size, by: pieceSize) {
      let end = min(start + pieceSize, size)
      #expect(firstDifference(Array(content[start..<end]), noise(end - start, seed: UInt64(start))) == nil, "\(start)")
    }
    #expect(try firstDifference(Mapping(of: Handle(plot("file"), O_RDWR), count: size).bytes, content) == nil)
  }

  @Test(arguments: Ground.Kind.here) func `a record that many write over is one writer's alone`(
    kind: Ground.Kind
  ) throws {
    let plot = try Plot.on(kind)
    let (records, size) = (48, 4096)
    try Kernel.makeFile(plot("file"), [UInt8](repeating: 0, count: records * size))
    try inParallel(Self.writers) { writer in
      let file = try Handle(plot("file"), O_WRONLY)
      var generator = SeededGenerator(seed: UInt64(writer))
      for _ in 0..<150 {
        let record = Int.random(in: 0..<records, using: &generator)
        try file.write([UInt8](repeating: UInt8(writer + 1), count: size), at: record * size)
      }
    }
    let content = try Kernel.content(plot("file"))
    #expect(content.count == records * size)
    for record in 0..<records {
      #expect(Set(content[(record * size)..<((record + 1) * size)]).count == 1, "\(record)")
    }
  }

  @Test(arguments: Ground.Kind.here, [40, 1000, 7001])
  func `what many append is all there, each piece whole and each writer's in order`(kind: Ground.Kind, size: Int) throws
  {
    let plot = try Plot.on(kind)
    let rounds = 60
    try Kernel.makeFile(plot("file"))
    @Sendable func piece(_ writer: Int, _ round: Int) -> [UInt8] {
      let head = Array("\(writer) \(round) ".utf8)
      return head + [UInt8](repeating: UInt8(ascii: "a") + UInt8(writer), count: size - head.count - 1) + [0x0a]
    }
    try inParallel(Self.writers) { writer in
      let file = try Handle(plot("file"), O_WRONLY | O_APPEND)
      for round in 0..<rounds {
        guard try file.write(piece(writer, round)) == size else { throw CallError(EIO) }
      }
    }
    let lines = try Kernel.content(plot("file")).split(separator: 0x0a).map { Array($0) + [0x0a] }
    #expect(lines.count == Self.writers * rounds)
    for writer in 0..<Self.writers {
      let own = lines.filter { $0.starts(with: Array("\(writer) ".utf8)) }
      #expect(own == (0..<rounds).map { piece(writer, $0) }, "\(writer)")
    }
  }

  @Test(arguments: Ground.Kind.here) func `many files are written and read at once`(kind: Ground.Kind) throws {
    let plot = try Plot.on(kind)
    try inParallel(Self.writers) { writer in
      var generator = SeededGenerator(seed: UInt64(100 + writer))
      try Kernel.mkdir(plot("\(writer)"))
      for number in 0..<25 {
        let path = plot("\(writer)/\(number)")
        let file = try Handle(path, O_CREAT | O_RDWR)
        var expected: [UInt8] = []
        for _ in 0..<8 {
          let offset = Int.random(in: 0...(expected.count + 5000), using: &generator)
          let bytes = generator.bytes(Int.random(in: 1...40_000, using: &generator))
          try file.write(bytes, at: offset)
          expected += [UInt8](repeating: 0, count: max(0, offset + bytes.count - expected.count))
          expected.replaceSubrange(offset..<(offset + bytes.count), with: bytes)
        }
        guard try Kernel.content(path) == expected else { throw CallError(EIO) }
        if number.isMultiple(of: 3) {
          try Kernel.unlink(path)
        } else {
          try Kernel.rename(path, path + "-renamed")
          guard try file.readAll() == expected else { throw CallError(EIO) }
        }
      }
    }
    for writer in 0..<Self.writers { #expect(try Kernel.names(plot("\(writer)")).count == 16) }
  }

  @Test(arguments: Ground.Kind.here) func `what is read while a file is cut off and grown again is its own`(
    kind: Ground.Kind
  ) throws {
    // At every moment the file has ones or nothing; zeros would be what was never written.
    // The kernel fills a page of a mount that is cut off meanwhile with zeros, and may keep it when the file has grown
    // again: between programs that do not lock, neither it nor we can tell the two moments apart.
    let plot = try Plot.on(kind)
    let size = 100_000
    let ones = [UInt8](repeating: 1, count: size)
    try Kernel.makeFile(plot("file"), ones)
    try withKnownIssue(isIntermittent: true) {
      try cutAndGrow(plot("file"), ones)
    } when: {
      plot.isMount
    }
    // What the file has, whatever the kernel keeps in a page.
    let stored = try Handle(plot("file"), O_RDONLY | (plot.isMount ? GNU.direct : 0)).read(size + 1, at: 0)
    #expect(firstDifference(stored, ones) == nil)
  }

  private func cutAndGrow(_ path: String, _ ones: [UInt8]) throws {
    let size = ones.count
    try inParallel(3) { number in
      let file = try Handle(path, O_RDWR)
      if number == 0 {
        for _ in 0..<80 {
          try file.truncate(to: 0)
          try file.write(ones, at: 0)
        }
      } else {
        for _ in 0..<150 {
          let bytes = try file.read(size, at: 0)
          guard bytes.allSatisfy({ $0 == 1 }), bytes.count <= size else { throw CallError(EIO) }
        }
      }
    }
    #expect(try firstDifference(Kernel.content(path), ones) == nil)
  }
}
