internal import CofferCrypto
internal import CofferFiles
internal import CofferKeys
internal import CofferSystem
internal import Foundation

/// Small commits, durable before SQLite has them.
///
/// SQLite writes whole pages: for a file of 4 KiB that is synced eight, of 8 KiB each. Here it takes its own length, in one
/// write; and what many such commits have changed goes to SQLite together, once there is no more room here.
///
/// The file is a pass: a salt, the name of the commit that the first entry follows (``RootRecord/commit``), and behind them
/// entries, each sealed under a key of that salt (``Sealing``) and bound to the commit that it follows. What an earlier pass left is
/// no entry of this one; neither is one that a crash has torn, nor any that is not of this vault. The entries that count are those
/// which lead on from the very commit that SQLite has: it may have some of them already, for they may go there one by one. Whoever cuts
/// entries off, or changes what the pass begins with, gets an older state, which the anchor tells as it does where SQLite's own log
/// is cut.
///
/// Used only under the journal's lock (``IndexTables``).
final class CommitJournal {
  /// So that what it holds finds room in SQLite with what is kept for removals (``Ballast``), where a disk is suddenly full: all
  /// together, or one entry after the other.
  static let byteCount = 256 << 10
  /// Commits of a pass at most: the rows of small ones may lie far apart, and change eight pages each.
  static let entryLimit = 32
  private static let saltByteCount = 32
  /// A pass's salt and what its first entry follows.
  private static let headByteCount = saltByteCount + RootRecord.commitByteCount
  private static let entryOverhead = 4 + Sealing.overhead

  private let folder: VaultFolder
  private let index: FileStatus
  private let log: FileStatus
  private let metadataKey: SecretKey
  private let context: [UInt8]
  private var file: OwnedDescriptor?
  /// Where the next entry goes; nil where the next begins a pass.
  private var pass: (key: SecretKey, end: Int, count: Int)?
  /// Nothing can be added to this pass any more.
  private var isBroken = false

  /// - Parameters:
  ///   - index: SQLite's file, as it was opened.
  ///   - log: that of its log.
  init(
    in folder: VaultFolder, beside index: FileStatus, _ log: FileStatus, metadataKey: SecretKey, vault: VaultID
  ) {
    (self.folder, self.index, self.log) = (folder, index, log)
    self.metadataKey = metadataKey
    context = Array("coffer journal \(VaultFormat.version)".utf8) + vault.bytes
  }

  /// Bytes that the next entry can have.
  var room: Int {
    if isBroken || pass?.count ?? 0 >= Self.entryLimit { return 0 }
    return Self.byteCount - (pass?.end ?? Self.headByteCount) - Self.entryOverhead
  }

  /// Throws `damaged` where the index or its log has no name any more, or another file has it: what was removed takes what is written to it,
  /// and nothing of that is kept.
  func requireIndex() throws {
    for (name, opened) in [(VaultFormat.index, index), (VaultFormat.indexLog, log)] {
      guard try folder.files.status(of: name, in: folder.descriptor)?.isSameFile(as: opened) == true else {
        throw VaultError.damaged(what: "its index was removed or replaced while it was open")
      }
    }
  }

  // MARK: Reading

  /// The commits that follow `commit`, which SQLite has. Those that come next are added behind them.
  ///
  /// What is no plain file holds no entry: then the anchor tells whether some are missing.
  /// - Throws: `damaged` where there is something else in an entry.
  func entries(after commit: [UInt8]) throws -> [JournalEntry] {
    guard let bytes = try contents(), bytes.count > Self.headByteCount else { return [] }
    let key = passKey(Array(bytes[..<Self.saltByteCount]))
    var end = Self.headByteCount
    var last = Array(bytes[Self.saltByteCount..<Self.headByteCount])
    var entries: [JournalEntry] = []
    /// How many of them SQLite has; nil until its commit is among those that the pass went through.
    var storedCount = last == commit ? 0 : nil
    while let (plaintext, next) = entry(in: bytes, at: end, key, after: last) {
      do { entries.append(try JournalEntry(decoding: plaintext)) } catch { throw Self.damaged }
      last = entries[entries.count - 1].root.commit
      end = next
      if last == commit { storedCount = entries.count }
    }
    guard let storedCount, storedCount < entries.count else { return [] }
    pass = (key, end, entries.count)
    return Array(entries[storedCount...])
  }

  /// What lies in the journal's place, where it is a plain file. Whatever somebody has put behind a journal's length is left out, and
  /// must not keep entries from being found that are written into this file.
  private func contents() throws -> [UInt8]? {
    guard let status = try folder.files.status(of: VaultFormat.journal, in: folder.descriptor), status.kind == .file
    else { return nil }
    let file = try folder.files.open(
      VaultFormat.journal, [.readOnly, .noFollow, .nonBlocking], in: folder.descriptor)
    // Of what was opened: something else may have taken the name.
    let opened = try file.status()
    guard opened.kind == .file else { return nil }
    var bytes = [UInt8](repeating: 0, count: Int(min(opened.byteCount, UInt64(Self.byteCount))))
    let count = try bytes.withUnsafeMutableBytes { bytes in
      Result { () throws(SystemError) in try file.readFully(at: 0, into: bytes) }
    }.get()
    return Array(bytes[..<count])
  }

  /// Nil where no whole entry begins that follows `commit`.
  private func entry(
    in bytes: [UInt8], at start: Int, _ key: SecretKey, after commit: [UInt8]
  ) -> (plaintext: [UInt8], end: Int)? {
    var reader = ByteReader(Array(bytes[start...].prefix(4)))
    guard let count = try? reader.read(UInt32.self), count <= bytes.count - start - 4 else { return nil }
    let end = start + 4 + Int(count)
    let plaintext = bytes.withUnsafeBytes { bytes in
      try? Sealing.open(
        UnsafeRawBufferPointer(rebasing: bytes[(start + 4)..<end]), key: key, authenticating: context(after: commit))
    }
    return plaintext.map { ($0, end) }
  }

  // MARK: Writing

  /// Makes an entry durable behind the others. `false` where that fails: then it is not there, and nothing can be added until
  /// ``restart()``.
  ///
  /// - Parameter commit: the one before.
  /// - Throws: where nobody can know whether the entry is there.
  func append(_ entry: [UInt8], after commit: [UInt8]) throws -> Bool {
    isBroken = true
    let salt = pass == nil ? Randomness.bytes(Self.saltByteCount) : []
    let (key, start, position) = pass ?? (passKey(salt), 0, 0)
    let head = pass == nil ? salt + commit : []
    let count = UInt32(entry.count + Sealing.overhead)
    guard let file = try? openedFile(),
      let bytes = try? Sealing.seal(
        entry, key: key, authenticating: context(after: commit), after: head + count.bigEndianBytes)
    else { return false }
    // Without its last bytes it is no entry.
    guard (try? bytes.withUnsafeBytes({ try file.writeAll($0, at: UInt64(start)) })) != nil else { return false }
    guard (try? file.syncData()) != nil else {
      try withdraw(from: start, file)
      return false
    }
    do {
      // Without its name nobody finds it after a crash. The next pass makes another.
      let named = try folder.files.status(of: VaultFormat.journal, in: folder.descriptor)
      guard try named?.isSameFile(as: file.status()) == true else {
        self.file = nil
        return false
      }
    } catch {
      try withdraw(from: start, file)
      return false
    }
    pass = (key, start + bytes.count, position + 1)
    isBroken = false
    return true
  }

  private func openedFile() throws -> OwnedDescriptor {
    if let file { return file }
    let opened = try folder.files.open(
      VaultFormat.journal, [.readWrite, .create, .noFollow, .nonBlocking], permissions: 0o600, in: folder.descriptor)
    guard try opened.status().kind == .file else { throw Self.damaged }
    try folder.descriptor.sync()
    file = opened
    return opened
  }

  /// Takes an entry out again of which nobody knows whether it is stored: who made it may be told that it is not, and go another
  /// way.
  private func withdraw(from start: Int, _ file: OwnedDescriptor) throws {
    do {
      try file.truncate(to: UInt64(start))
      try file.sync()
    } catch {
      // Not the failure itself: that may be a full disk, after which a commit is tried again.
      throw VaultError.system(SystemError(code: EIO, call: "fsync"))
    }
  }

  /// SQLite has every entry: the next begins a pass.
  func restart() {
    pass = nil
    isBroken = false
  }

  /// Takes the file away, once SQLite has every entry.
  func remove() {
    restart()
    file = nil
    _ = try? folder.files.unlink(VaultFormat.journal, in: folder.descriptor)
  }

  private func passKey(_ salt: [UInt8]) -> SecretKey { metadataKey.derived("journal", context: salt) }

  private func context(after commit: [UInt8]) -> [UInt8] { context + commit }

  static let damaged = VaultError.damaged(what: "the index's journal")
}
