/// Something of the last commit that an operation needs and that is not in memory.
enum StoredRead: Hashable, Sendable {
  /// A page of buckets.
  case page(Int)
  /// Which rows a bucket has.
  case bucket(Int)
  /// The opened value of a row.
  case value(RowID)
  /// The opened values of the `count` rows from after `first` up to and with `last`, which begin with the same prefix.
  case values(RecordKind, after: RowKey?, through: RowKey, count: Int)

  /// What the last commit says that must be found.
  enum Expectation: Equatable, Sendable {
    case page(tag: [UInt8])
    case bucket(Bucket)
    case value(RowTag)
    case values([SortedRows.Row])
  }

  /// What was found, held against what was expected.
  enum Answer: Sendable {
    case page([Bucket])
    case bucket(VerifiedRows.Scan)
    case value([UInt8])
    case values([RowKey: [UInt8]])
  }

  typealias Outcome = Result<Answer, any Error>
}

/// What was read for one operation, which begins anew each time that something was.
///
/// An answer holds as long as the same would be expected: the last commit may be another by then.
struct StoredAnswers {
  /// Whether the rows of buckets are kept for the operation too, however many others are remembered meanwhile. Not for who goes
  /// through more buckets than there is memory for, and gets on with each.
  let keepsBuckets: Bool
  private var outcomes: [StoredRead: (expected: StoredRead.Expectation, outcome: StoredRead.Outcome)] = [:]

  init(keepsBuckets: Bool = true) { self.keepsBuckets = keepsBuckets }

  mutating func add(_ outcome: StoredRead.Outcome, of read: StoredRead, _ expected: StoredRead.Expectation) {
    outcomes[read] = (expected, outcome)
  }

  /// - Parameter expected: what would be expected now.
  func outcome(of read: StoredRead, _ expected: () -> StoredRead.Expectation?) -> StoredRead.Outcome? {
    guard let known = outcomes[read], known.expected == expected() else { return nil }
    return known.outcome
  }
}

/// Ends an operation that needs what is not in memory: it is undone, begins anew when that was read, and nobody else sees this.
struct NotInMemory: Error {}
