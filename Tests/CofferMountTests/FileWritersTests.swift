import CofferFiles
import Testing

@testable import CofferMount

@Suite struct FileWritersTests {
  private static let file = InodeNumber(value: 7)
  private static let other = InodeNumber(value: 8)

  @Test func `a file is known for as long as somebody has it open`() {
    let writers = FileWriters()
    writers.didClose(Self.file)
    #expect(writers.numbers.isEmpty)
    for _ in 0..<2 { writers.didOpen(Self.file) }
    writers.didClose(Self.file)
    #expect(writers.contains(Self.file) && !writers.contains(Self.other))
    writers.didClose(Self.file)
    #expect(!writers.contains(Self.file))
  }

  @Test func `who writes hears once that somebody else has changed the file`() {
    let writers = FileWriters()
    // Nobody has it open.
    writers.disturb(Self.file)
    writers.didOpen(Self.file)
    #expect(!writers.takeDisturbance(of: Self.file))
    writers.didOpen(Self.other)
    writers.disturb(Self.file)
    writers.disturb(Self.other)
    #expect(writers.takeDisturbance(of: Self.file))
    #expect(!writers.takeDisturbance(of: Self.file))
    // The other one's is neither taken nor lost by that.
    #expect(writers.takeDisturbance(of: Self.other))
    #expect(!writers.takeDisturbance(of: Self.other))
  }

  @Test func `what is closed is not disturbed any more, and takes nothing from another`() {
    let writers = FileWriters()
    for number in [Self.file, Self.other] { writers.didOpen(number) }
    writers.didOpen(Self.other)
    for number in [Self.file, Self.other] { writers.disturb(number) }
    writers.didClose(Self.file)
    writers.didOpen(Self.file)
    #expect(!writers.takeDisturbance(of: Self.file))
    // Open once more: it stays disturbed.
    writers.didClose(Self.other)
    #expect(writers.takeDisturbance(of: Self.other))
  }

  @Test func `an end is told once, and again where it was moved meanwhile`() {
    let writers = FileWriters()
    #expect(!writers.tellsEnd(10, of: Self.file))
    writers.didOpen(Self.file)
    #expect(writers.tellsEnd(10, of: Self.file))
    #expect(!writers.tellsEnd(10, of: Self.file))
    #expect(writers.tellsEnd(20, of: Self.file))
    #expect(writers.tellsEnd(10, of: Self.file))
    writers.willMoveEnd(of: Self.file)
    #expect(writers.tellsEnd(10, of: Self.file))
    // Who opens it anew knows nothing of that.
    writers.didClose(Self.file)
    writers.didOpen(Self.file)
    #expect(writers.tellsEnd(10, of: Self.file))
  }
}
