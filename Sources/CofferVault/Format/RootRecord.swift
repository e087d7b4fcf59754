internal import CofferCrypto
internal import CofferFiles
internal import CofferSystem

/// The sealed root: what a commit writes last, or the journal has a ``RootChange`` of. Through the buckets that it holds, and the tags of the pages that hold the
/// others, it authenticates every row.
struct RootRecord: Equatable, Sendable {
  /// What it is sealed for, as other values are for their row's key.
  static let row: [UInt8] = [1]

  /// Rises with every commit.
  var generation: UInt64
  /// Drawn for each commit, and names what it left: the journal's entries follow it, and the anchor knows it.
  private(set) var commit: [UInt8]
  /// Drawn at creation: a vault that went another way has another.
  var branch: [UInt8]
  var nextInode: UInt64
  /// The high-water mark of objects' numbers.
  var nextObject: UInt64
  /// The salt of the next opening that writes.
  var nextSalt: UInt32
  /// The GCM tags of the bucket pages, as each was last sealed, one behind the other; zeros where a page never was. What the
  /// root does not hold of its buckets has no row.
  private var pageTags: [UInt8]
  /// Buckets that have changed since their pages were sealed, by number: so that a small commit seals no page.
  private(set) var buckets: [Int: Bucket] = [:]

  /// Buckets that a root holds at most.
  static let bucketLimit = 32
  static let branchByteCount = 16
  static let commitByteCount = 16
  private static let noPage = [UInt8](repeating: 0, count: Sealing.tagByteCount)
  static let pageCount = VaultFormat.bucketCount / VaultFormat.bucketsPerPage

  /// The tag of a bucket page; nil where it was never sealed.
  func pageTag(_ page: Int) -> [UInt8]? {
    let tag = pageTags[Self.place(of: page)]
    return tag.elementsEqual(Self.noPage) ? nil : Array(tag)
  }

  mutating func setPageTag(_ page: Int, to tag: some Collection<UInt8>) {
    pageTags.replaceSubrange(Self.place(of: page), with: tag)
  }

  /// Takes the branch and the counters of what operations made.
  mutating func take(_ numbers: RootRecord) {
    branch = numbers.branch
    (nextInode, nextObject) = (numbers.nextInode, numbers.nextObject)
  }

  /// - Parameter buckets: at most ``bucketLimit``.
  mutating func hold(_ buckets: [Int: Bucket]) {
    precondition(buckets.count <= Self.bucketLimit)
    self.buckets = buckets
  }

  /// It is another commit's from now on.
  mutating func drawCommit() { commit = Randomness.bytes(Self.commitByteCount) }

  /// Becomes what a commit left that followed this one.
  ///
  /// - Parameter pages: those that it sealed.
  mutating func apply(_ change: RootChange, pages: [(page: Int, value: [UInt8])]) throws(MalformedBytes) {
    (generation, commit, branch) = (change.generation, change.commit, change.branch)
    (nextInode, nextObject) = (change.nextInode, change.nextObject)
    for (page, value) in pages {
      guard value.count >= Sealing.overhead else { throw MalformedBytes() }
      setPageTag(page, to: value.suffix(Sealing.tagByteCount))
    }
    let held = pages.isEmpty ? buckets.merging(change.buckets) { $1 } : change.buckets
    guard held.count <= Self.bucketLimit else { throw MalformedBytes() }
    hold(held)
  }

  private static func place(of page: Int) -> Range<Int> {
    page * Sealing.tagByteCount..<(page + 1) * Sealing.tagByteCount
  }

  func encoded() -> [UInt8] {
    var writer = ByteWriter(capacity: 80 + pageTags.count + Self.bucketLimit * Bucket.numberedByteCount)
    writer.write(generation)
    writer.write(fixed: commit)
    writer.write(fixed: branch)
    writer.write(nextInode)
    writer.write(nextObject)
    writer.write(nextSalt)
    writer.write(fixed: pageTags)
    Bucket.encode(buckets, to: &writer)
    // So that its length neither tells how many there are nor keeps SQLite from writing it where it lies.
    writer.write(fixed: [UInt8](repeating: 0, count: (Self.bucketLimit - buckets.count) * Bucket.numberedByteCount))
    return writer.bytes
  }

  init(decoding bytes: [UInt8]) throws(MalformedBytes) {
    var reader = ByteReader(bytes)
    generation = try reader.read()
    commit = try reader.read(fixed: Self.commitByteCount)
    branch = try reader.read(fixed: Self.branchByteCount)
    nextInode = try reader.read()
    nextObject = try reader.read()
    nextSalt = try reader.read()
    pageTags = try reader.read(fixed: Self.pageCount * Sealing.tagByteCount)
    buckets = try Bucket.decodeNumbered(from: &reader, limit: Self.bucketLimit)
    let rest = try reader.read(fixed: (Self.bucketLimit - buckets.count) * Bucket.numberedByteCount)
    guard rest.allSatisfy({ $0 == 0 }) else { throw MalformedBytes() }
    try reader.finish()
  }

  init(branch: [UInt8]) {
    generation = 0
    commit = [UInt8](repeating: 0, count: Self.commitByteCount)
    self.branch = branch
    nextInode = InodeNumber.rootFolder.value + 1
    nextObject = 0
    nextSalt = 1
    pageTags = [UInt8](repeating: 0, count: Self.pageCount * Sealing.tagByteCount)
  }
}

/// The newest state of a vault that this device has seen, kept in the key store.
struct Anchor: Equatable {
  var branch: [UInt8]
  var generation: UInt64
  /// ``RootRecord/commit``.
  var commit: [UInt8]
  /// SHA-256 of `keybag.json`.
  var keybagDigest: [UInt8]
  /// SHA-256 of the keybag that is about to take its place; nil where no change is under way.
  var nextKeybagDigest: [UInt8]?
  /// The vault belongs to somebody beside its owner; see ``Vault/bind()``.
  var isBound: Bool

  private static let noDigest = [UInt8](repeating: 0, count: Digest.byteCount)

  /// Whether a vault with this root is as new as what was seen, or newer.
  func accepts(_ root: CommittedRoot) -> Bool {
    guard branch == root.branch else { return false }
    return root.generation == generation ? root.commit == commit : root.generation > generation
  }

  /// Whether the keybag is the one that was seen, or the one that a change was about to put in its place.
  func accepts(keybagDigest digest: [UInt8]) -> Bool { digest == keybagDigest || digest == nextKeybagDigest }

  func encoded() -> [UInt8] {
    var writer = ByteWriter()
    writer.write(UInt8(0))
    writer.write(fixed: branch)
    writer.write(generation)
    writer.write(fixed: commit)
    writer.write(fixed: keybagDigest)
    writer.write(fixed: nextKeybagDigest ?? Self.noDigest)
    writer.write(UInt8(isBound ? 1 : 0))
    return writer.bytes
  }

  init(
    branch: [UInt8], generation: UInt64, commit: [UInt8], keybagDigest: [UInt8], nextKeybagDigest: [UInt8]? = nil,
    isBound: Bool
  ) {
    self.branch = branch
    self.generation = generation
    self.commit = commit
    self.keybagDigest = keybagDigest
    self.nextKeybagDigest = nextKeybagDigest
    self.isBound = isBound
  }

  init(decoding bytes: [UInt8]) throws(MalformedBytes) {
    var reader = ByteReader(bytes)
    guard try reader.read(UInt8.self) == 0 else { throw MalformedBytes() }
    branch = try reader.read(fixed: RootRecord.branchByteCount)
    generation = try reader.read()
    commit = try reader.read(fixed: RootRecord.commitByteCount)
    keybagDigest = try reader.read(fixed: Digest.byteCount)
    let next = try reader.read(fixed: Digest.byteCount)
    nextKeybagDigest = next == Self.noDigest ? nil : next
    isBound = try reader.read(UInt8.self) != 0
    try reader.finish()
  }
}
