internal import CofferCrypto
internal import CofferSystem
internal import Foundation

/// The rows of the last commit: what is known of them in memory, verified against the buckets, the bucket pages and the root.
///
/// Used only under the index's lock, but for ``store(_:ended:)``. What is not in memory is said to be ``missing``, and the
/// operation that needs it ends with ``NotInMemory``; it is read without the index's lock (``RowReader``), and
/// the operation begins anew with the answers.
///
/// A commit goes in three steps: ``prepare(_:_:numbers:generation:)`` gathers what it needs to know, `store` seals and writes,
/// beside operations that find what they need in memory, and ``takeOver(_:)`` or ``giveUp(_:)`` ends it. In between everything
/// here is as the last commit left it.
final class StoredRows {
  let tables: IndexTables

  /// As it was last committed.
  private(set) var root: RootRecord

  /// Bucket pages that were read, each checked against the root. The root's own buckets hold in place of theirs.
  private var pages: [Int: [Bucket]] = [:]
  private var verified = VerifiedRows()
  /// Buckets that a commit leaves in the root at most. Tests leave none, so that there are pages.
  var heldBucketLimit = RootRecord.bucketLimit
  /// The key of this opening's salt, once that is committed.
  private var key: RecordKey?

  /// What was read for the operation that runs.
  private var answers = StoredAnswers()
  /// What it needs that must be read first.
  private(set) var missing: [StoredRead] = []
  /// What it is likely to need next.
  private(set) var askedAhead: [StoredRead] = []
  /// Whether what is needed is read at once, because the caller has the connection.
  var hasConnection = true

  /// For a new index: its first commit writes the first root.
  init(_ tables: IndexTables, new root: RootRecord) {
    self.tables = tables
    self.root = root
  }

  /// Opens the root. Throws `damaged` where it is not what a commit of this vault wrote.
  init(_ tables: IndexTables) throws {
    self.tables = tables
    root = try tables.readRoot()
  }

  /// See ``VerifiedRows/remembersMore``.
  var remembersMore: Bool {
    get { verified.remembersMore }
    set { verified.remembersMore = newValue }
  }

  // MARK: What is not in memory

  /// An operation begins, or begins anew with what was read for it.
  func begin(_ answers: StoredAnswers) {
    self.answers = answers
    missing.removeAll(keepingCapacity: true)
    askedAhead.removeAll(keepingCapacity: true)
  }

  /// What was read for the operation, for when it begins anew.
  func end() -> StoredAnswers {
    defer { answers = StoredAnswers() }
    return answers
  }

  /// What must be found where `read` looks; nil where nobody needs to look any more, or not yet.
  func expectation(of read: StoredRead) -> StoredRead.Expectation? {
    switch read {
    case .page(let page): return pages[page] == nil ? root.pageTag(page).map { .page(tag: $0) } : nil
    case .bucket(let index): return verified.use(index) ? nil : knownBucket(index).map { .bucket($0) }
    case .value(let id):
      return verified.use(id.key.bucket) ? verified.tag(id.kind.table, id.key).map { .value($0) } : nil
    case .values(let kind, let first, let last, let count):
      guard verified.use(last.bucket) else { return nil }
      return .values(verified.rows(kind.table, prefix: RowPrefix(high: last.high), after: first, limit: count))
    }
  }

  /// Remembers what was found, where the same would be expected now.
  ///
  /// - Returns: what the operation that asked is to be told when it begins anew; nil where it is sure to find it here.
  func take(_ outcome: StoredRead.Outcome, of read: StoredRead) -> StoredRead.Outcome? {
    switch (read, outcome) {
    case (.page(let page), .success(.page(let buckets))):
      pages[page] = buckets
      return nil
    case (.bucket(let index), .success(.bucket(let scan))):
      verified.insert(scan, of: index)
      return outcome
    default: return outcome
    }
  }

  /// Answers from what was read, or says that it must be read; nil where it was read and is in memory now.
  private func need(_ read: StoredRead) throws -> StoredRead.Answer? {
    if let outcome = answers.outcome(of: read, { expectation(of: read) }) { return try outcome.get() }
    guard hasConnection else {
      missing.append(read)
      throw NotInMemory()
    }
    guard let expected = expectation(of: read) else { return nil }
    return try take(Result { try tables.answer(read, expected) }, of: read)?.get()
  }

  // MARK: Reading

  /// Every bucket is read and verified again before it is next used, but for those that `isNeeded` is true of.
  func forgetVerified(unless isNeeded: (Int) -> Bool) {
    verified.forgetAll(unless: isNeeded)
    pages = pages.filter { page, _ in
      let first = page * VaultFormat.bucketsPerPage
      return (first..<first + VaultFormat.bucketsPerPage).contains(where: isNeeded)
    }
  }

  /// How many rows a bucket has, held against its sum.
  func rowCount(of bucket: Int) throws -> UInt64 {
    try verify(bucket)
    return UInt64(try self.bucket(bucket).count)
  }

  /// The opened value of a row, or nil where there is none.
  func value(_ id: RowID) throws -> [UInt8]? {
    guard try contains(id) else { return nil }
    guard case .value(let bytes)? = try need(.value(id)) else { throw NotInMemory() }
    return bytes
  }

  /// Asks for a row to be read with those that are missing, where it is there by what is known of its bucket.
  func askAhead(for id: RowID) {
    guard !hasConnection, verified.use(id.key.bucket), verified.tag(id.kind.table, id.key) != nil else { return }
    askedAhead.append(.value(id))
  }

  func contains(_ id: RowID) throws -> Bool {
    try verify(id.key.bucket)
    return verified.tag(id.kind.table, id.key) != nil
  }

  /// The keys that begin with `prefix`, from after `last` on, ascending, at most `limit`.
  func keys(_ kind: RecordKind, prefix: RowPrefix, after last: RowKey?, limit: Int) throws -> [RowKey] {
    try verify(RowKey.bucket(of: prefix.high))
    return verified.rows(kind.table, prefix: prefix, after: last, limit: limit).map(\.key)
  }

  /// The opened values of the `count` rows from after `first` up to and with `last`, which begin with the same prefix.
  func values(_ kind: RecordKind, after first: RowKey?, through last: RowKey, count: Int) throws -> [RowKey: [UInt8]] {
    guard case .values(let values)? = try need(.values(kind, after: first, through: last, count: count)) else {
      throw NotInMemory()
    }
    return values
  }

  /// The opened values of rows that are there.
  func values(_ kind: RecordKind, of keys: [RowKey]) throws -> [RowKey: [UInt8]] {
    var values: [RowKey: [UInt8]] = [:]
    var isComplete = true
    // All that are missing, so that they are read together.
    for key in keys {
      do { values[key] = try value(RowID(kind: kind, key: key)) } catch is NotInMemory { isComplete = false }
    }
    guard isComplete else { throw NotInMemory() }
    return values
  }

  /// Compares a bucket's rows with what must be there, once, before the first read or write in it.
  func verify(_ index: Int) throws {
    if verified.use(index) { return }
    // First the page that says what must be there.
    _ = try bucket(index)
    if case .bucket(let scan)? = try need(.bucket(index)), !verified.use(index) {
      // It was read for this operation, and others have taken its room since.
      verified.insert(scan, of: index)
    }
    guard verified.use(index) else { throw NotInMemory() }
  }

  // MARK: Committing

  /// A row that a commit stores, or removes where `record` is nil.
  struct Change: Sendable {
    let id: RowID
    let record: Record?
  }

  /// What the last commit says of the rows that a commit is about to change. Gathered in as many steps as it takes: nothing
  /// else changes it meanwhile.
  struct ReplacedRows: Sendable {
    /// The tags of the stored rows, in the order of the changes.
    fileprivate(set) var replaced: [RowTag?] = []
    /// The buckets of the changes.
    fileprivate(set) var buckets: [Int: Bucket] = [:]
  }

  /// What a commit is about to store, and what it needs to know of the last one for it.
  struct Preparation: Sendable {
    let changes: [Change]
    let rows: ReplacedRows
    /// What the root is to hold of buckets, and the pages that take the others, as the last commit left them.
    let held: [Int: Bucket]
    let pages: [Int: [Bucket]]
    let root: RootRecord
    let key: RecordKey
    /// The salt of `key`, where it is not stored yet.
    let newSalt: [UInt8]?
  }

  /// What a commit stored: what becomes of this when it is taken over.
  struct Stored: Sendable {
    fileprivate let commit: SealedCommit
    fileprivate let key: RecordKey
  }

  /// Gathers what a commit of `changes`, which are in the order of the tables' trees, needs. `numbers` gives the counters of
  /// the new root.
  ///
  /// - Parameter rows: what was gathered before it had to begin anew.
  func prepare(
    _ changes: [Change], _ rows: inout ReplacedRows, numbers: RootRecord, generation: UInt64
  ) throws -> Preparation {
    // Before the first write in a bucket, because a write would take a replayed row into the new sum.
    for change in changes[rows.replaced.count...] {
      let number = change.id.key.bucket
      do {
        try verify(number)
        if rows.buckets[number] == nil { rows.buckets[number] = try bucket(number) }
      } catch let error as NotInMemory {
        // With those that come next, so that they are read together.
        for number in Set(changes[rows.replaced.count...].prefix(Self.prepareAhead).map(\.id.key.bucket)) {
          try? verify(number)
        }
        throw error
      }
      rows.replaced.append(verified.tag(change.id.kind.table, change.id.key))
    }
    let (held, pages) = try placeBuckets(rows.buckets)
    var next = root
    next.take(numbers)
    next.generation = generation
    if let key {
      return Preparation(
        changes: changes, rows: rows, held: held, pages: pages, root: next, key: key, newSalt: nil)
    }
    let index = next.nextSalt
    guard index < .max else { throw VaultError.damaged(what: "a salt") }
    next.nextSalt += 1
    let salt = Randomness.bytes(RecordSealer.saltByteCount)
    return Preparation(
      changes: changes, rows: rows, held: held, pages: pages, root: next,
      key: tables.sealer.key(index, drawn: salt), newSalt: salt)
  }

  /// Changes that are looked at together where a commit needs what is not in memory.
  private static let prepareAhead = 512

  /// Seals and stores what was prepared: in the journal, or else in SQLite. Nobody who reads waits for it, unless little
  /// room is left. Needs no lock of the index's, and the caller has none.
  ///
  /// Where it fails for a full disk, the last commit is what is stored; else nobody knows, and nothing more is written.
  /// - Parameter ended: called with the outcome under the index's lock, before anybody can know what was stored.
  func store(_ preparation: Preparation, ended: (Result<Stored, any Error>) -> Void) {
    do {
      let commit = try SealedCommit(preparation, tables.hasher)
      let stored = Stored(commit: commit, key: preparation.key)
      if try tables.addToJournal(commit, publish: { ended(.success(stored)) }) { return }
      try tables.using { _ in try tables.write(commit, publish: { ended(.success(stored)) }) }
    } catch {
      tables.lock.withLock { ended(.failure(error)) }
    }
  }

  /// What was stored is the last commit from now on.
  func takeOver(_ stored: Stored) {
    let commit = stored.commit
    if key == nil { tables.sealer.keep(stored.key) }
    key = stored.key
    root = commit.root
    pages.merge(commit.pages) { $1 }
    for change in commit.changes { verified.set(change.tag, change.row.table, change.row.id.key) }
  }

  /// What was prepared is not stored: its rows are read and verified again before they are next used.
  func giveUp(_ preparation: Preparation) {
    for bucket in preparation.rows.buckets.keys { verified.forget(bucket) }
  }

  /// The next commit's generation will be above `generation`.
  func raiseGeneration(to generation: UInt64) { root.generation = max(root.generation, generation) }

  /// Where the buckets go that differ from their pages: into the root, or, where they are too many for it, into their pages. A
  /// page that cannot be opened stays as it is, and the root goes on to hold its buckets: what is damaged elsewhere keeps
  /// nobody from a commit.
  private func placeBuckets(_ changed: [Int: Bucket]) throws -> (held: [Int: Bucket], pages: [Int: [Bucket]]) {
    var held = root.buckets.merging(changed) { $1 }
    var pages: [Int: [Bucket]] = [:]
    if held.count > heldBucketLimit {
      for (page, numbers) in Dictionary(grouping: held.keys, by: { $0 / VaultFormat.bucketsPerPage }) {
        guard var buckets = try? self.page(page) else { continue }
        for number in numbers {
          if let bucket = held.removeValue(forKey: number) { buckets[number % VaultFormat.bucketsPerPage] = bucket }
        }
        pages[page] = buckets
      }
      guard missing.isEmpty else { throw NotInMemory() }
      // Those whose pages could not be opened: the root held them before, for no other could be changed.
      guard held.count <= RootRecord.bucketLimit else {
        throw VaultError.damagedBuckets(page: (held.keys.first ?? 0) / VaultFormat.bucketsPerPage)
      }
    }
    return (held, pages)
  }

  // MARK: Buckets

  /// What a bucket must hold: the root's word, else its page's.
  private func bucket(_ index: Int) throws -> Bucket {
    if let known = knownBucket(index) { return known }
    _ = try page(index / VaultFormat.bucketsPerPage)
    guard let known = knownBucket(index) else { throw NotInMemory() }
    return known
  }

  private func knownBucket(_ index: Int) -> Bucket? {
    if let held = root.buckets[index] { return held }
    let (page, offset) = index.quotientAndRemainder(dividingBy: VaultFormat.bucketsPerPage)
    return knownPage(page)?[offset]
  }

  private func page(_ page: Int) throws -> [Bucket] {
    if let known = knownPage(page) { return known }
    _ = try need(.page(page))
    guard let known = knownPage(page) else { throw NotInMemory() }
    return known
  }

  /// A page that the root names none of is empty.
  private func knownPage(_ page: Int) -> [Bucket]? {
    if let known = pages[page] { return known }
    guard root.pageTag(page) == nil else { return nil }
    let empty = [Bucket](repeating: Bucket(), count: VaultFormat.bucketsPerPage)
    pages[page] = empty
    return empty
  }
}
