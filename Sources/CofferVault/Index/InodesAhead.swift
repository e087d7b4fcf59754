/// Tells which inodes' records are likely to be needed next, from those that were not in memory.
///
/// Whoever reads one record after the other, as a program does that goes through a tree, is given the next ones with each that is
/// missing: they lie beside it. Several may do so at the same time.
struct InodesAhead {
  /// Records that are read ahead.
  static let count: UInt64 = 16
  /// Readers that are told apart.
  private static let readerLimit = 4

  /// The number that each reader missed last, and what was answered; who was here last is last.
  private var readers: [(missed: UInt64, next: ClosedRange<UInt64>?)] = []

  /// The numbers to read with `number`, whose record is missing; nil where nothing says that they will be needed.
  mutating func next(missing number: UInt64) -> ClosedRange<UInt64>? {
    // An operation that begins anew asks again, and others may have asked meanwhile.
    if let known = readers.first(where: { $0.missed == number }) { return known.next }
    var next: ClosedRange<UInt64>?
    if let reader = readers.lastIndex(where: { $0.missed < number && number - $0.missed <= Self.count + 1 }) {
      readers.remove(at: reader)
      // Nobody gave a number that has no others behind it.
      let (end, isBeyond) = number.addingReportingOverflow(Self.count)
      if !isBeyond { next = number + 1...end }
    } else if readers.count == Self.readerLimit {
      readers.removeFirst()
    }
    readers.append((number, next))
    return next
  }
}
