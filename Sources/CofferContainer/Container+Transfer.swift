public import CofferCrypto
public import CofferFiles
internal import CofferPolicy
public import CofferSystem
internal import CofferVault
internal import Synchronization

/// Content in and out.
extension Container {
  /// Stores a new file, in place of a file that has the name where `replacing`. Asks the gate for `import`.
  ///
  /// It becomes visible when it is complete; where it fails or is cancelled nothing of it stays.
  @discardableResult
  public func importFile(
    _ source: ImportSource, to path: VaultPath, replacing: Bool, control: TransferControl = TransferControl()
  ) throws -> FileAttributes {
    try gate.check(.owner, .import, file: nil)
    return try ContainerError.catching {
      try vault.importFile(source, to: path, replacing: replacing, control: control)
    }
  }

  /// Stores the plaintext of a stream in RNCryptor's format, versions 2 and 3. Asks the gate for `import`.
  ///
  /// The stream is read from the descriptor's position on. Nothing has a name, and nothing stays, unless the whole stream
  /// fits the code at its end; where it does not, the failure is of the category `damaged`.
  @discardableResult
  public func importRNCryptor(
    _ stream: OwnedDescriptor, secret: RNCryptorSecret, permissions: UInt16, modified: Timestamp?, to path: VaultPath,
    replacing: Bool, control: TransferControl = TransferControl()
  ) throws -> FileAttributes {
    try gate.check(.owner, .import, file: nil)
    return try ContainerError.catching {
      let source = ImportSource(
        descriptor: stream, decoder: try RNCryptorOpener(secret: secret), permissions: permissions, modified: modified)
      return try vault.importFile(source, to: path, replacing: replacing, control: control)
    }
  }

  /// As `importFile`, also while the vault is locked: the file becomes one of class complete at the next unlock. Nothing
  /// that is there is replaced. Asks the gate for `import`.
  @discardableResult
  public func deposit(
    _ source: ImportSource, to path: VaultPath, control: TransferControl = TransferControl()
  ) throws -> FileAttributes {
    try gate.check(.owner, .import, file: nil)
    return try ContainerError.catching { try vault.deposit(source, to: path, control: control) }
  }

  /// Whether the owner may bring files in at all; throws the refusal. For callers that prepare something first.
  public func checkImport() throws { try gate.check(.owner, .import, file: nil) }

  /// Opens a file for the owner to take a copy out. Asks the gate for `saveCopy`.
  public func openForSaving(_ path: VaultPath) throws -> SavedCopy {
    try ContainerError.catching {
      let snapshot = try vault.snapshot(of: path)
      let facts = FoundFacts { try self.facts(of: snapshot, at: path) }
      try gate.check(.owner, .saveCopy, file: facts.value)
      return SavedCopy(snapshot: snapshot) { [gate] in
        try gate.check(.owner, .saveCopy, file: facts.value, isRepeated: true)
      }
    }
  }

  /// What policy needs to know of a file, from its snapshot.
  func facts(of snapshot: FileSnapshot, at path: VaultPath) throws -> FileFacts {
    let sniffed = try detector.content(of: SnapshotReader(snapshot: snapshot)).mediaType
    let name = String(decoding: path.lastName ?? [], as: UTF8.self)
    return FileFacts(
      content: ContentType(fileName: name, sniffed: sniffed),
      protection: ProtectionLevel(snapshot.attributes.protection),
      size: Int64(clamping: snapshot.byteCount))
  }
}

/// What a file is, found out once, and only when somebody asks.
private final class FoundFacts: Sendable {
  private let find: @Sendable () throws -> FileFacts
  private let found = Mutex<FileFacts?>(nil)

  init(_ find: @escaping @Sendable () throws -> FileFacts) { self.find = find }

  @Sendable func value() throws -> FileFacts {
    try found.withLock { found in
      let facts = try found ?? find()
      found = facts
      return facts
    }
  }
}

/// A file that the gate has let out, at the version that was decided on.
public final class SavedCopy: Sendable {
  private let snapshot: FileSnapshot
  private let confirm: @Sendable () throws -> Void
  public var attributes: FileAttributes { snapshot.attributes }

  /// - Parameter confirm: throws where policy does not let it out any more.
  init(snapshot: FileSnapshot, confirm: @escaping @Sendable () throws -> Void) {
    self.snapshot = snapshot
    self.confirm = confirm
  }

  /// Throws the refusal where policy does not let it out any more: for whoever is about to give what was written a name.
  public func requirePermission() throws { try confirm() }

  /// Writes the whole content: at offsets and on all cores where `isSeekable`, else in order.
  ///
  /// Each block is verified before it is written. The gate is asked again when all is written. A failure leaves a part, or what was
  /// let out before: write to a temporary name.
  public func write(
    to output: OwnedDescriptor, isSeekable: Bool, control: TransferControl = TransferControl()
  ) throws {
    try ContainerError.catching { try snapshot.export(to: output, isSeekable: isSeekable, control: control) }
    try confirm()
  }

  /// Writes the whole content in RNCryptor's format, version 3, in order. The gate is asked again then.
  ///
  /// A failure leaves a part, which nobody can take for the whole: write to a temporary name all the same.
  public func writeRNCryptor(
    to output: OwnedDescriptor, secret: RNCryptorSecret, control: TransferControl = TransferControl()
  ) throws {
    try ContainerError.catching { try snapshot.exportRNCryptor(to: output, secret: secret, control: control) }
    try confirm()
  }
}

/// A snapshot as the content detector and deliveries read it.
struct SnapshotReader: ContentReader {
  let snapshot: FileSnapshot

  var byteCount: UInt64 { snapshot.byteCount }

  func read(at offset: UInt64, into buffer: UnsafeMutableRawBufferPointer) throws -> Int {
    try snapshot.read(at: offset, into: buffer)
  }
}

extension ProtectionLevel {
  init(_ protection: ProtectionClass) {
    self =
      switch protection {
      case .complete: .complete
      case .completeUnlessOpen: .completeUnlessOpen
      case .untilFirstUnlock: .untilFirstUnlock
      case .none: .none
      }
  }
}
