public import CofferSystem

/// Open-In: gives an app a copy of its own, in its Inbox, complete or not at all.
///
/// The copy is written without a name (where the system cannot, under a hidden random one), made durable, and gets its
/// name last, after a final look at whether what was decided still holds. Until then the app cannot open it, and a crash
/// leaves nothing. A name that is taken is never replaced: the copy is numbered.
public struct OpenInDelivery: Sendable {
  private let files: FileSystem
  private static let bufferSize = 256 << 10
  /// Copies with one name at most.
  private static let numberLimit = 10_000

  public init(files: FileSystem = FileSystem()) { self.files = files }

  /// Delivers `content` under `name` and returns the path of the copy, in bytes as its name.
  ///
  /// - Parameters:
  ///   - content: a snapshot: the bytes that were decided on.
  ///   - name: the file's name in the vault, bytes as POSIX has them.
  ///   - stillCurrent: whether the decision still holds; asked when the copy is complete, before it gets its name.
  /// - Throws: `AppError`, or what `content` and `stillCurrent` throw. Nothing of the copy is left behind then, unless
  ///   the error came from making the new name itself durable: the copy is then complete in its place.
  public func deliver(
    _ content: some ContentReader, named name: [UInt8], to container: AppContainer, stillCurrent: () throws -> Bool
  ) throws -> [UInt8] {
    guard FileName.isValid(name) else { throw AppError.invalidFileName }
    let inbox = try container.openInbox()
    let delivered: [UInt8]
    do {
      let staged = try StagedFile(in: inbox, files: files)
      try write(content, to: staged.descriptor)
      guard try stillCurrent() else { throw AppError.outdatedDecision }
      delivered = try place(staged, named: name)
    } catch {
      throw AppError.wrapping(error)
    }
    try AppError.catching { () throws(SystemError) in try inbox.sync() }
    return Array((container.inboxPath + "/").utf8) + delivered
  }

  /// Writes a complete, durable copy that nobody may write to.
  private func write(_ content: some ContentReader, to file: OwnedDescriptor) throws {
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: Self.bufferSize, alignment: 4096)
    defer {
      overwrite(buffer)
      buffer.deallocate()
    }
    var offset: UInt64 = 0
    while offset < content.byteCount {
      let count = try content.readFully(at: offset, into: buffer)
      guard count > 0 else { throw AppError.incompleteContent }
      try file.writeAll(UnsafeRawBufferPointer(rebasing: buffer[..<count]))
      offset += UInt64(count)
    }
    // In the Inbox an app reads and deletes; it moves a file out before it edits.
    try file.setPermissions(0o400)
    try file.sync()
  }

  /// Gives the copy the first name that is free.
  private func place(_ staged: StagedFile, named name: [UInt8]) throws -> [UInt8] {
    for number in 1...Self.numberLimit {
      let candidate = number == 1 ? name : FileName.numbered(name, number)
      if try staged.publish(as: candidate) { return candidate }
    }
    throw AppError.alreadyExists
  }
}
