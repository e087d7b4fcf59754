import CofferTestSupport
import Foundation
import Testing

@testable import CofferContainer

@Suite("A ZIP directory")
struct ZipDirectoryTests {
  private let plain = ZipBuilder([.init("a.txt", "first"), .init("b/c.txt", "second, longer"), .init("d", [])])

  private func read(_ bytes: [UInt8]) throws -> ZipDirectory? { try ZipDirectory(of: BytesReader(bytes)) }

  @Test func `lists the entries with their places`() throws {
    let bytes = plain.bytes()
    let directory = try #require(try read(bytes))
    #expect(directory.entries.map { String(decoding: $0.name, as: UTF8.self) } == ["a.txt", "b/c.txt", "d"])
    for (entry, file) in zip(directory.entries, plain.files) {
      let start = Int(entry.dataOffset)
      #expect(Array(bytes[start..<(start + Int(entry.byteCount))]) == file.data)
    }
  }

  @Test func `accepts an empty archive, a comment, and sizes that follow the data`() throws {
    #expect(try read(ZipBuilder([]).bytes())?.entries == [])
    var commented = plain
    commented.comment = [UInt8](repeating: 0x20, count: 65_535)
    #expect(try read(commented.bytes())?.entries.count == 3)
    var streamed = plain
    for index in streamed.files.indices { streamed.files[index].flags = 8 }
    #expect(try read(streamed.bytes())?.entries.count == 3)
  }

  @Test func `is bounded in entries and in bytes`() throws {
    let names = (0..<ZipDirectory.entryLimit).map { "\($0)" }
    #expect(try read(ZipBuilder(names: names).bytes())?.entries.count == ZipDirectory.entryLimit)
    #expect(try read(ZipBuilder(names: names + ["one more"]).bytes()) == nil)
    let long = String(repeating: "n", count: 60_000)
    #expect(try read(ZipBuilder(names: (0..<17).map { long + "\($0)" }).bytes())?.entries.count == 17)
    #expect(try read(ZipBuilder(names: (0..<18).map { long + "\($0)" }).bytes()) == nil)
  }

  /// Each of these is an archive to some reader and another one, or none, to the next.
  @Test(arguments: Lie.all) func `refuses`(lie: Lie) throws {
    #expect(try read(lie.bytes) == nil)
  }

  @Test func `of random bytes reads nothing outside and never crashes`() throws {
    var generator = SeededGenerator(seed: 0xC0FFE2)
    for _ in 0..<2000 {
      var bytes = (0..<Int.random(in: 0...300, using: &generator)).map { _ in
        UInt8.random(in: 0...255, using: &generator)
      }
      // Most random bytes are no ZIP at once; signatures at random places reach deeper.
      for signature: [UInt8] in [[0x50, 0x4b, 3, 4], [0x50, 0x4b, 1, 2], [0x50, 0x4b, 5, 6]] where bytes.count > 26 {
        let place = Int.random(in: 0...(bytes.count - 22), using: &generator)
        bytes.replaceSubrange(place..<(place + 4), with: signature)
      }
      let reader = BytesReader(bytes)
      _ = try ZipDirectory(of: reader)
      _ = try ZipEnd.isInTail(of: reader)
      #expect(reader.readsOutside == 0)
    }
  }

  @Test func `of a changed archive never crashes, and what it accepts lies inside`() throws {
    var generator = SeededGenerator(seed: 7)
    let originals =
      [plain.bytes(), ZipBuilder(names: ZipBuilder.wordNames).bytes()] + (try DocumentFixtures.archives())
    var accepted = 0
    for round in 0..<3000 {
      var bytes = originals[round % originals.count]
      // The interesting bytes stand at the end.
      for _ in 0..<Int.random(in: 1...4, using: &generator) {
        let reach = Bool.random(using: &generator) ? min(bytes.count, 120) : bytes.count
        bytes[bytes.count - Int.random(in: 1...reach, using: &generator)] = UInt8.random(in: 0...255, using: &generator)
      }
      if round % 5 == 0 { bytes.removeLast(Int.random(in: 0..<bytes.count, using: &generator)) }
      let reader = BytesReader(bytes)
      if let directory = try ZipDirectory(of: reader) {
        accepted += 1
        #expect(directory.entries.allSatisfy { $0.dataOffset + $0.byteCount <= reader.byteCount })
      }
      #expect(reader.readsOutside == 0)
      #expect(reader.bytesRead < 2 * ZipDirectory.directoryLimit)
    }
    // Changes inside an entry's data are not the directory's to see: some are accepted, and most others are not.
    #expect(accepted > 0 && accepted < 3000)
  }
}

struct Lie: CustomTestStringConvertible {
  let testDescription: String
  let bytes: [UInt8]

  private static let two: [ZipBuilder.File] = [.init("a", "first"), .init("b", "second")]

  private static func altered(_ change: (inout ZipBuilder) -> Void) -> [UInt8] {
    var builder = ZipBuilder(two)
    change(&builder)
    return builder.bytes()
  }

  /// The archive of two files, with one byte replaced, counted from the end record's start.
  private static func withEnd(_ place: Int, _ value: UInt8) -> [UInt8] {
    var bytes = ZipBuilder(two).bytes()
    bytes[bytes.count - 22 + place] = value
    return bytes
  }

  static let all: [Lie] = [
    Lie(testDescription: "nothing", bytes: []),
    Lie(testDescription: "an end record alone, cut short", bytes: Array(ZipBuilder([]).bytes().dropLast())),
    Lie(testDescription: "bytes before it", bytes: [0x20] + ZipBuilder(two).bytes()),
    Lie(
      testDescription: "bytes before it that the offsets know",
      bytes: Array("#!/bin/sh\n".utf8) + altered { $0.offsetShift = 10 }),
    Lie(testDescription: "bytes behind it", bytes: ZipBuilder(two).bytes() + [0]),
    Lie(testDescription: "bytes between its entries", bytes: altered { $0.files[0].gapAfter = [1, 2, 3] }),
    Lie(
      testDescription: "12 bytes between, announced by nothing",
      bytes: altered { $0.files[0].gapAfter = [UInt8](repeating: 0, count: 12) }),
    Lie(testDescription: "bytes before its directory", bytes: altered { $0.beforeDirectory = [0] }),
    Lie(
      testDescription: "another archive before its directory",
      bytes: altered { $0.beforeDirectory = ZipBuilder(two).bytes() }),
    Lie(testDescription: "another archive in its comment", bytes: altered { $0.comment = ZipBuilder(two).bytes() }),
    Lie(
      testDescription: "an end record in its comment",
      bytes: altered { $0.comment = [0x50, 0x4b, 5, 6] + [UInt8](repeating: 0, count: 18) }),
    Lie(
      testDescription: "a signature in its comment",
      bytes: altered { $0.comment = [0x50, 0x4b, 5, 6] + [UInt8](repeating: 1, count: 30) }),
    Lie(testDescription: "two archives, one after the other", bytes: ZipBuilder(two).bytes() + ZipBuilder(two).bytes()),
    Lie(testDescription: "one name twice", bytes: altered { $0.files[1].name = "a" }),
    Lie(testDescription: "another name before the data", bytes: altered { $0.files[0].localName = "c" }),
    Lie(testDescription: "a longer name before the data", bytes: altered { $0.files[0].localName = "longer" }),
    Lie(testDescription: "no name", bytes: altered { $0.files[0].name = "" }),
    Lie(testDescription: "a size that overlaps the next entry", bytes: altered { $0.files[0].directorySize = 6 }),
    Lie(testDescription: "a size that reaches into the directory", bytes: altered { $0.files[1].directorySize = 100 }),
    Lie(testDescription: "a size that hides the end of the data", bytes: altered { $0.files[0].directorySize = 1 }),
    Lie(testDescription: "a size beyond the file", bytes: altered { $0.files[1].directorySize = 0xFFFF_FFFE }),
    Lie(testDescription: "a ZIP64 size", bytes: altered { $0.files[1].directorySize = 0xFFFF_FFFF }),
    Lie(testDescription: "fewer entries announced", bytes: altered { $0.stateEntryCount = 1 }),
    Lie(testDescription: "more entries announced", bytes: altered { $0.stateEntryCount = 3 }),
    Lie(testDescription: "a ZIP64 count", bytes: altered { $0.stateEntryCount = 0xFFFF }),
    Lie(testDescription: "another disk", bytes: altered { $0.disk = 1 }),
    Lie(testDescription: "another count on this disk", bytes: withEnd(8, 1)),
    Lie(testDescription: "a directory of another size", bytes: withEnd(12, 1)),
    Lie(testDescription: "a directory at another place", bytes: withEnd(16, 1)),
    Lie(testDescription: "a huge directory", bytes: withEnd(15, 0xFE)),
    Lie(testDescription: "a comment that is not there", bytes: withEnd(20, 1)),
    Lie(testDescription: "two entries over the same bytes", bytes: overlapping()),
  ]

  /// Two entries of the directory whose offsets are the same.
  private static func overlapping() -> [UInt8] {
    var bytes = ZipBuilder(two).bytes()
    let second = bytes.count - 22 - 47
    bytes.replaceSubrange((second + 42)..<(second + 46), with: [0, 0, 0, 0])
    return bytes
  }
}
