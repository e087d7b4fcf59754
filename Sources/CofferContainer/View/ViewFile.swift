public import CofferFiles
internal import CofferVault

/// A file that a view's client has open. Each call passes the view's choke point: an open file ends with the view.
public final class ViewFile: Sendable {
  /// Bytes that a file can have at most.
  public static let byteCountLimit = OpenFile.byteCountLimit

  public let number: InodeNumber
  public let access: ContainerView.Access
  private let view: ContainerView
  private let file: OpenFile

  init(_ file: OpenFile, _ number: InodeNumber, _ access: ContainerView.Access, in view: ContainerView) {
    self.file = file
    self.access = access
    self.number = number
    self.view = view
  }

  private func perform<Result>(
    _ access: ContainerView.Access, _ body: (OpenFile) throws -> Result
  ) throws(ViewError) -> Result {
    try view.perform(access, on: number) { _ in try body(file) }
  }

  public func attributes() throws(ViewError) -> FileAttributes { try perform(.reading) { try $0.attributes } }

  /// As ``OpenFile/read(at:into:)``.
  public func read(at offset: UInt64, into buffer: UnsafeMutableRawBufferPointer) throws(ViewError) -> Int {
    try perform(.reading) { try $0.read(at: offset, into: buffer) }
  }

  public func write(_ bytes: UnsafeRawBufferPointer, at offset: UInt64) throws(ViewError) {
    try perform(.writing) { try $0.write(bytes, at: offset) }
  }

  /// As ``OpenFile/writeSome(_:at:)``, in one step among all views.
  public func writeSome(
    _ bytes: UnsafeRawBufferPointer, at offset: UInt64? = nil
  ) throws(ViewError) -> (offset: UInt64, count: Int) {
    try perform(.writing) { try $0.writeSome(bytes, at: offset) }
  }

  /// Cuts the file, or extends it with a hole.
  public func truncate(to byteCount: UInt64) throws(ViewError) {
    try perform(.writing) { try $0.truncate(to: byteCount) }
  }

  /// Extends the file with a hole; one that is as long already, whoever has made it so, stays as it is.
  public func extend(to byteCount: UInt64) throws(ViewError) {
    try perform(.writing) { try $0.extend(to: byteCount) }
  }

  /// Makes a range read as zeros. The size stays.
  public func punchHole(_ range: Range<UInt64>) throws(ViewError) {
    try perform(.writing) { try $0.punchHole(range) }
  }

  /// Lets the content count as changed now, also where it is what it was.
  public func touch() throws(ViewError) { try perform(.writing) { try $0.touch() } }

  /// SEEK_DATA; `noSuchPlace` where nothing but holes follows, or the offset lies behind the end.
  public func nextData(from offset: UInt64) throws(ViewError) -> UInt64 {
    try perform(.reading) { file in
      guard let found = try file.nextData(from: offset) else { throw ViewError.noSuchPlace }
      return found
    }
  }

  /// SEEK_HOLE; `noSuchPlace` where the offset lies behind the end.
  public func nextHole(from offset: UInt64) throws(ViewError) -> UInt64 {
    try perform(.reading) { file in
      guard offset < (try file.attributes.byteCount) else { throw ViewError.noSuchPlace }
      return try file.nextHole(from: offset)
    }
  }

  /// Makes the content durable, and the names that lead to it.
  public func sync() throws(ViewError) { try perform(.reading) { try $0.sync() } }

  /// Something was written, perhaps by others, that has not joined the vault: to close the file takes a while.
  public var hasUnjoinedChanges: Bool { file.hasUnjoinedChanges }

  /// Ends the use of the file. What was written joins the vault.
  public func close() throws(ViewError) {
    // Also when the view has ended: what was written while it lasted stays.
    do { try file.close() } catch { throw ViewError(error) }
  }
}

extension ContainerView {
  /// Opens a file. Throws `locked`, `isADirectory`, and `invalid` for what has no content.
  public func open(_ number: InodeNumber, _ access: Access) throws(ViewError) -> ViewFile {
    let file = try perform(access, on: number) { try $0.open(number, access == .writing ? .writing : .reading) }
    return ViewFile(file, number, access, in: self)
  }

  /// Makes a file and opens it for writing.
  public func createFile(
    _ name: [UInt8], in folder: InodeNumber, _ node: NewNode
  ) throws(ViewError) -> (attributes: FileAttributes, file: ViewFile) {
    if name.count > VaultPath.nameLimit { throw .nameTooLong }
    let (attributes, file) = try perform(.writing, on: folder) { vault in
      try vault.createFile(name, in: folder, vault.inheriting(node, folder))
    }
    return (attributes, ViewFile(file, attributes.number, .writing, in: self))
  }

  /// Makes a file without a name and opens it for writing; ``link(_:as:in:)`` can give it one while it is open.
  public func createFile(
    withoutNameIn folder: InodeNumber, _ node: NewNode
  ) throws(ViewError) -> (attributes: FileAttributes, file: ViewFile) {
    let (attributes, file) = try perform(.writing, on: folder) { vault in
      try vault.createFile(withoutNameIn: folder, vault.inheriting(node, folder))
    }
    return (attributes, ViewFile(file, attributes.number, .writing, in: self))
  }
}
