/// Tells which inodes' records are likely to be needed next, from those that were not in memory.
///
/// Whoever reads one record after the other, as a program does that goes through a tree, is given the next ones with each that is
/// missing: they lie beside it. Several may do so at the same time.
struct InodesAhead {
  /// Records that are read ahead.
  static let count: UInt64 = 16
  /// Readers that are told apart.
  private static let readerLimit = 4

  /// The number that each reader missed last; who was here last is last.
  private var missed: [UInt64] = []
  /// What was answered last: an operation that begins anew asks again.
  private var answer: (number: UInt64, next: ClosedRange<UInt64>?)?

  /// The numbers to read with `number`, whose record is missing; nil where nothing says that they will be needed.
  mutating func next(missing number: UInt64) -> ClosedRange<UInt64>? {
    if let answer, answer.number == number { return answer.next }
    var next: ClosedRange<UInt64>?
    if let reader = missed.lastIndex(where: { $0 < number && number - $0 <= Self.count + 1 }) {
      missed.remove(at: reader)
      // Whoever asks for a number without others behind it has made it up.
      let (end, isBeyond) = number.addingReportingOverflow(Self.count)
      if !isBeyond { next = number + 1...end }
    } else if missed.count == Self.readerLimit {
      missed.removeFirst()
    }
    missed.append(number)
    answer = (number, next)
    return next
  }
}
