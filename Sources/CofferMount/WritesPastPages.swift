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
  private var writes: [InodeNumber: [Range<UInt64>]] = [:]
  /// How many pages, or runs of such, are being brought back of each file.
  private var pageCounts: [InodeNumber: Int] = [:]

  /// Runs `body`, which writes to a range of a file past the kernel's pages, and drops these then.
  func writing<Result>(_ number: InodeNumber, _ range: Range<UInt64>, _ body: () throws -> Result) rethrows -> Result {
    condition.withLock {
      writes[number, default: []].append(range)
      // Those that have not been told of this.
      while pageCounts[number] != nil { condition.wait() }
    }
    defer {
      condition.withLock {
        var rest = writes[number] ?? []
        if let index = rest.firstIndex(of: range) { rest.remove(at: index) }
        writes[number] = rest.isEmpty ? nil : rest
      }
    }
    return try body()
  }

  /// Runs `body`, which stores what the kernel brings back of pages, for each part of their range that is not being written past them.
  func bringingBack(_ number: InodeNumber, _ range: Range<UInt64>, _ body: (Range<UInt64>) throws -> Void) rethrows {
    var parts = RangeSet(range)
    condition.withLock {
      for write in writes[number] ?? [] { parts.remove(contentsOf: write) }
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
