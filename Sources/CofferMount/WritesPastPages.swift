internal import CofferFiles
internal import Foundation

/// What is being written to files past the kernel's pages, and what the kernel brings back of pages meanwhile.
///
/// A program that stores to a mapping makes a page of it dirty, which the kernel brings back whole. Such a page may have been read
/// before a write past it, and would take that back. So what is being written past the pages is left out of what comes of them,
/// until those that are older have been dropped.
final class WritesPastPages: @unchecked Sendable {
  private let condition = NSCondition()
  // Under `condition`.
  private var writes: [InodeNumber: [Int: Range<UInt64>]] = [:]
  private var nextWrite = 0
  /// How many pages, or runs of such, are being brought back of each file.
  private var pageCounts: [InodeNumber: Int] = [:]

  /// Runs `body`, which writes to a range of a file past the kernel's pages, and drops these then. What it is given it calls when it knows
  /// in which part of the range it has written.
  func writing<Result>(
    _ number: InodeNumber, _ range: Range<UInt64>, _ body: (_ narrow: (Range<UInt64>) -> Void) throws -> Result
  ) rethrows -> Result {
    let write = condition.withLock {
      let write = nextWrite
      nextWrite += 1
      writes[number, default: [:]][write] = range
      // Those that have not been told of this.
      while pageCounts[number] != nil { Turn.pausingOwn { condition.wait() } }
      return write
    }
    defer {
      condition.withLock {
        writes[number]?[write] = nil
        if writes[number]?.isEmpty == true { writes[number] = nil }
      }
    }
    return try body { part in condition.withLock { writes[number]?[write] = part } }
  }

  /// Runs `body`, which stores what the kernel brings back of pages, for each part of their range that is not being written past them.
  func bringingBack(_ number: InodeNumber, _ range: Range<UInt64>, _ body: (Range<UInt64>) throws -> Void) rethrows {
    var parts = RangeSet(range)
    condition.withLock {
      for write in (writes[number] ?? [:]).values { parts.remove(contentsOf: write) }
      pageCounts[number, default: 0] += 1
    }
    defer {
      condition.withLock {
        let count = pageCounts[number]! - 1
        pageCounts[number] = count > 0 ? count : nil
        if count == 0 { condition.broadcast() }
      }
    }
    for part in parts.ranges { try body(part) }
  }
}
