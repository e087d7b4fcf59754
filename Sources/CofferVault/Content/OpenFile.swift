public import CofferFiles
internal import CofferSystem
internal import Synchronization

/// A file opened for reading or writing, from any number of threads.
///
/// What is written can be read at once through every handle, and is durable when ``sync()`` or the vault's commit
/// returned. A crash before leaves the file as it was at one earlier moment. Handles outlive the file's name.
public final class OpenFile: Sendable {
  /// Bytes that a file can have at most.
  public static let byteCountLimit = VaultFormat.fileSizeLimit

  /// Writing includes reading.
  public enum Access: Sendable { case reading, writing }

  public let access: Access
  private let vault: Vault
  private let node: FileNode
  private let state: Mutex<State>

  private struct State {
    var isClosed = false
    /// Calls that are at work: the last of them ends the use of a handle that was closed meanwhile.
    var running = 0
    /// The file's failures that this handle has reported, or that came before it.
    var reported: Int
  }

  /// Takes over a use of the node.
  init(_ node: FileNode, in vault: Vault, _ access: Access) {
    self.node = node
    self.vault = vault
    self.access = access
    state = Mutex(State(reported: node.overlay.withLock { $0.failures }))
  }

  deinit { try? close() }

  /// The file's attributes with everything that was written so far.
  public var attributes: FileAttributes {
    get throws(VaultError) {
      try begin(.reading)
      defer { end() }
      return try vault.look { session in try vault.attributes(of: self.node.number, session) }
    }
  }

  // MARK: Content

  /// Reads at `offset` until `buffer` is full or the content ends; returns how many bytes. Behind them `buffer` may change, up
  /// to the end of the last block.
  ///
  /// Throws `damaged` when stored blocks are not those that were written; the buffer then holds zeros, and other blocks
  /// can still be read.
  public func read(at offset: UInt64, into buffer: UnsafeMutableRawBufferPointer) throws(VaultError) -> Int {
    try begin(.reading)
    defer { end() }
    return try VaultError.catching { try node.read(at: offset, into: buffer) }
  }

  /// Writes at `offset`. A gap between the end and there becomes a hole. Where it fails, a part may be written.
  public func write(_ bytes: UnsafeRawBufferPointer, at offset: UInt64) throws(VaultError) {
    try begin(.writing)
    defer { end() }
    try VaultError.catching { try node.write(bytes, at: offset) }
  }

  /// Writes at `offset`, or at the end where there is none, in one step among threads. Returns where, and how many bytes: fewer where
  /// the file has grown and the rest failed. Throws only where it has not grown, so that whoever tries again at the end has
  /// nothing twice.
  public func writeSome(
    _ bytes: UnsafeRawBufferPointer, at offset: UInt64? = nil
  ) throws(VaultError) -> (offset: UInt64, count: Int) {
    try begin(.writing)
    defer { end() }
    return try VaultError.catching { try node.writeSome(bytes, at: offset) }
  }

  /// Cuts the file, or extends it with a hole.
  public func truncate(to byteCount: UInt64) throws(VaultError) {
    try begin(.writing)
    defer { end() }
    try VaultError.catching { try node.truncate(to: byteCount) }
  }

  /// Extends the file with a hole; one that is as long already, whoever has made it so, stays as it is.
  public func extend(to byteCount: UInt64) throws(VaultError) {
    try begin(.writing)
    defer { end() }
    try VaultError.catching { try node.truncate(to: byteCount, isCutting: false) }
  }

  /// Makes a range read as zeros and gives the space of the whole blocks in it back. The size stays.
  public func punchHole(_ range: Range<UInt64>) throws(VaultError) {
    try begin(.writing)
    defer { end() }
    try VaultError.catching { try node.punchHole(range) }
  }

  /// The first byte at or behind `offset` that does not lie in a hole; nil where only holes follow (SEEK_DATA).
  public func nextData(from offset: UInt64) throws(VaultError) -> UInt64? {
    try begin(.reading)
    defer { end() }
    return try VaultError.catching { try node.nextData(from: offset) }
  }

  /// The first byte at or behind `offset` that lies in a hole; the file's end where none follows (SEEK_HOLE).
  public func nextHole(from offset: UInt64) throws(VaultError) -> UInt64 {
    try begin(.reading)
    defer { end() }
    return try VaultError.catching { try node.nextHole(from: offset) }
  }

  /// Lets the content count as changed now, also where it is what it was.
  public func touch() throws(VaultError) {
    try begin(.writing)
    defer { end() }
    try VaultError.catching { try node.touch() }
  }

  /// The content as it is now, to be read whatever happens to the file.
  public func snapshot() throws(VaultError) -> FileSnapshot {
    try begin(.reading)
    defer { end() }
    vault.files.retain(node)
    return try VaultError.catching {
      try FileSnapshot(
        node, in: vault, attributes: try vault.look { FileAttributes(try $0.inode(self.node.number)) })
    }
  }

  // MARK: Durability

  /// Makes everything written to the file so far durable, whatever others have written to other files.
  ///
  /// A failure is reported once on each handle of the file. After one that leaves nobody knowing what is on the disk,
  /// the file takes no more changes (`needsReopening`).
  public func sync() throws(VaultError) {
    try begin(.reading)
    defer { end() }
    let result = Result { () throws(VaultError) in
      try VaultError.catching { try node.join() }
      try vault.commitJoined()
    }
    try report()
    try result.get()
  }

  /// What was written, through any handle, has not all joined the vault.
  public var hasUnjoinedChanges: Bool { access == .writing && node.hasChanges.load(ordering: .acquiring) }

  /// Ends the handle's use. What was written joins the vault, and is durable with the next commit. Reports a failure
  /// that the handle has not reported yet. Closing again does nothing.
  public func close() throws(VaultError) {
    let wasClosed = state.withLock { state in
      defer {
        if !state.isClosed { state.running += 1 }
        state.isClosed = true
      }
      return state.isClosed
    }
    if wasClosed { return }
    defer { end() }
    guard access == .writing else { return }
    // Nobody will read what has no name and no other user.
    if vault.files.isClosed || vault.files.goesWithItsUser(node) { return try report() }
    // Remembered by the node, and reported below.
    let result = Result { () throws(VaultError) in try VaultError.catching { try node.join() } }
    try report()
    if case .failure(let error) = result, error != .needsReopening { throw error }
  }

  private func report() throws(VaultError) {
    let (failures, failure) = node.overlay.withLock { ($0.failures, $0.failure) }
    let isNew = state.withLock { state in
      defer { state.reported = failures }
      return failures > state.reported
    }
    if isNew, let failure { throw failure }
  }

  private func begin(_ access: Access) throws(VaultError) {
    let isOpen = state.withLock { state in
      if state.isClosed { return false }
      state.running += 1
      return true
    }
    guard isOpen else { throw .badHandle }
    if access == .writing, self.access == .reading {
      end()
      throw .badHandle
    }
  }

  private func end() {
    let isLast = state.withLock { state in
      state.running -= 1
      return state.isClosed && state.running == 0
    }
    if isLast { vault.files.release(node, in: vault) }
  }
}

extension Vault {
  /// Opens a file. Throws `notFound`, `isADirectory` or `wrongKind`, and for writing `olderThanAnchor`.
  public func open(
    _ path: VaultPath, _ access: OpenFile.Access, followingLinks: Bool = false
  ) throws(VaultError) -> OpenFile {
    try open(access) { try $0.resolve(path, followingLinks: followingLinks) }
  }

  /// Opens a file by its number, also one that has no name any more but is in use.
  public func open(_ number: InodeNumber, _ access: OpenFile.Access) throws(VaultError) -> OpenFile {
    try open(access) { try $0.node(number) }
  }

  private func open(
    _ access: OpenFile.Access, _ find: (IndexSession) throws -> Inode
  ) throws(VaultError) -> OpenFile {
    if access == .writing, isReadOnly { throw .olderThanAnchor }
    // Used before the index's lock is let go, so that no removal comes between.
    let node = try look { session in try self.node(of: find(session)) }
    let file = OpenFile(node, in: self, access)
    try VaultError.catching { try node.bringKeyThatStays() }
    return file
  }

  /// Makes an empty file and opens it for writing; a file that is there is opened as it is, unless `exclusive`.
  ///
  /// - Parameter blockSizeExponent: log₂ of the size of the blocks that the file gets when it outgrows its record, 12 to
  ///   20; nil chooses by its size.
  public func createFile(
    at path: VaultPath, permissions: UInt16 = 0o600, exclusive: Bool = false, blockSizeExponent: UInt8? = nil
  ) throws(VaultError) -> OpenFile {
    precondition(blockSizeExponent.map { VaultFormat.blockSizeExponents.contains($0) } ?? true)
    let node = try change(adding: .rows) { session in
      let (parent, name) = try session.place(of: path)
      if let existing = try session.entry(name, in: parent.number) {
        if exclusive { throw VaultError.exists }
        return try self.node(of: session.inode(existing.inode))
      }
      let (inode, cipher) = try self.newFile(NewNode(permissions: permissions), in: parent, session)
      try self.insert(inode, as: name, in: parent.number, session)
      // Last: an operation that fails must not leave a node.
      let node = try self.node(of: inode, cipher)
      if let blockSizeExponent { node.force(blockSizeExponent) }
      return node
    }
    let file = OpenFile(node, in: self, .writing)
    try VaultError.catching { try node.bringKeyThatStays() }
    return file
  }

  /// Makes an empty file in a folder and opens it for writing. Throws `invalidName`, `notFound` or `notADirectory` for the
  /// folder, `exists`, and `locked`.
  public func createFile(
    _ name: [UInt8], in folder: InodeNumber, _ node: NewNode
  ) throws(VaultError) -> (attributes: FileAttributes, file: OpenFile) {
    let (attributes, node) = try change(adding: .rows) { session in
      let name = try VaultPath.checked(name)
      let parent = try session.folder(folder)
      let (inode, cipher) = try self.newFile(node, in: parent, session)
      try self.insert(inode, as: name, in: parent.number, session)
      // Last: an operation that fails must not leave a node.
      return (FileAttributes(inode), try self.node(of: inode, cipher))
    }
    return (attributes, OpenFile(node, in: self, .writing))
  }

  /// Makes an empty file that has no name, as one has none whose last name went, and opens it for writing.
  /// ``link(_:as:in:)`` can give it one as long as it is open or held. Else it goes with its last user, and with a crash.
  ///
  /// - Parameter folder: the file gets its class.
  /// Throws `notFound` or `notADirectory` for the folder, and `locked`.
  public func createFile(
    withoutNameIn folder: InodeNumber, _ node: NewNode
  ) throws(VaultError) -> (attributes: FileAttributes, file: OpenFile) {
    let (attributes, node) = try change(adding: .rows) { session in
      let (named, cipher) = try self.newFile(node, in: session.folder(folder), session)
      try session.requireRoom()
      var inode = named
      inode.linkCount = 0
      try session.store(inode)
      try session.addOrphan(ListedNode(inode), at: inode.changed)
      session.afterOperation { self.files.didOrphan(inode.number, isNameless: true) }
      return (FileAttributes(inode), try self.node(of: named, cipher))
    }
    return (attributes, OpenFile(node, in: self, .writing))
  }

  /// Lets what was written to a file so far join the vault, where somebody has it open: what follows becomes durable
  /// with it or after it. Throws what keeps it from joining.
  public func joinContent(of number: InodeNumber) throws(VaultError) {
    try VaultError.catching { try files.node(number)?.join() }
  }

  /// Makes names and attributes durable, and the content of files that has joined the vault; without waiting for what
  /// was written to others and is still in memory.
  public func commitNames() throws(VaultError) {
    removeLetGo()
    try commitJoined()
  }

  /// A use of an inode's node. Under the index's lock.
  ///
  /// - Parameter cipher: of a file that was just made; nil unwraps the file's key.
  func node(of inode: Inode, _ cipher: FileCipher? = nil) throws -> FileNode {
    // Also where somebody else has it open.
    if cipher == nil, inode.kind == .file { try keys.requireOpening(inode.protection) }
    return try files.use(inode) { try FileNode(inode, cipher, vault: self) }
  }
}

extension FileNode {
  /// The block size of an object that the file does not have yet.
  fileprivate func force(_ exponent: UInt8) { writing.withLock { _ in forcedExponent = exponent } }
}
