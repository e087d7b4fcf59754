public import CofferCrypto
public import CofferSystem

/// The folder of one policy server: `coffer.sqlite` with everything, and `server.key`, which unseals the private keys
/// in it. Only its owner may look into it.
public struct DataDirectory: Sendable {
  public let path: String
  /// Seals the companies' private keys. A backup of the database without it gives away none of them.
  public let serverKey: SecretKey

  /// The store's file.
  public var database: String { Self.database(in: path) }

  /// Opens the folder. With `creating`, makes it and a new server key when it is not there or empty.
  ///
  /// Throws ``ServerError`` for a folder that is something else, and `SystemError`.
  public init(_ path: String, creating: Bool, files: FileSystem = FileSystem()) throws {
    self.path = path
    if creating { try files.makeDirectories(path) }
    guard try files.status(of: path) != nil else { throw ServerError.noDataDirectory }
    let folder = try files.open(path, .directory)
    let names = Set(try files.names(in: folder).map { String(decoding: $0, as: UTF8.self) })
    if !names.contains(Self.keyName) {
      guard !names.contains(Self.databaseName) else { throw ServerError.serverKeyMissing }
      guard names.allSatisfy({ $0.hasPrefix(".") }) else { throw ServerError.dataDirectoryNotEmpty }
      guard creating else { throw ServerError.noDataDirectory }
      try folder.setPermissions(0o700)
      try Self.makeKey(in: folder, files: files)
    }
    try folder.setPermissions(0o700)
    serverKey = try Self.readKey(in: folder, files: files)
  }

  /// Makes a data directory of a backup and the server key that belongs to it.
  ///
  /// Throws `ServerError.dataDirectoryNotEmpty` where there is something already, `.serverKeyDamaged`, and `SystemError`.
  public static func restore(
    _ path: String, database: String, serverKey: String, files: FileSystem = FileSystem()
  ) throws -> DataDirectory {
    let key = try files.open(serverKey, .readOnly)
    let bytes = try SecretBytes(count: SecretKey.byteCount) { buffer in
      guard try key.readFully(into: buffer) == buffer.count else { throw ServerError.serverKeyDamaged }
    }
    let backup = try files.open(database, .readOnly)
    try files.makeDirectories(path)
    let folder = try files.open(path, .directory)
    guard try files.names(in: folder).isEmpty else { throw ServerError.dataDirectoryNotEmpty }
    try folder.setPermissions(0o700)
    let copy: OwnedDescriptor
    do {
      copy = try files.open(databaseName, [.writeOnly, .createNew], permissions: 0o600, in: folder)
    } catch {
      guard error.isTaken else { throw error }
      throw ServerError.dataDirectoryNotEmpty
    }
    do {
      try Self.copy(backup, to: copy)
      // Last: a folder with a database and no key is refused, so that an interrupted restoration is not taken for one.
      try files.replaceDurably(keyName, in: folder, with: bytes)
    } catch {
      for name in [keyName, databaseName] { _ = try? files.unlink(name, in: folder) }
      throw error
    }
    return try DataDirectory(path, creating: false, files: files)
  }

  /// Takes away what ``restore(_:database:serverKey:files:)`` made, where that turned out to be of no use: the same may be tried again.
  public func undoRestoration(files: FileSystem = FileSystem()) {
    guard let folder = try? files.open(path, .directory) else { return }
    for name in [Self.keyName] + ["-wal", "-shm", "-journal", ""].map({ Self.databaseName + $0 }) {
      _ = try? files.unlink(name, in: folder)
    }
  }

  private static func copy(_ source: OwnedDescriptor, to file: OwnedDescriptor) throws {
    var portion = [UInt8](repeating: 0, count: 1 << 20)
    while true {
      let count = try portion.withUnsafeMutableBytes { try source.read(into: $0) }
      if count == 0 { break }
      try portion.withUnsafeBytes { try file.writeAll(UnsafeRawBufferPointer(rebasing: $0[..<count])) }
    }
    try file.sync()
  }

  private static let keyName = "server.key"
  private static let databaseName = "coffer.sqlite"

  private static func database(in path: String) -> String { path + "/" + databaseName }

  /// Leaves the key alone that another process may have made meanwhile.
  private static func makeKey(in folder: OwnedDescriptor, files: FileSystem) throws {
    let temporary = ".\(Randomness.bytes(8).hexadecimal).new"
    let file = try files.open(temporary, [.writeOnly, .createNew], permissions: 0o600, in: folder)
    do {
      try SecretKey().secretBytes.withUnsafeBytes { try file.writeAll($0) }
      try file.sync()
      if try !files.renameWithoutReplacing(temporary, to: keyName, in: folder) {
        try files.unlink(temporary, in: folder)
      }
      try folder.sync()
    } catch {
      _ = try? files.unlink(temporary, in: folder)
      throw error
    }
  }

  private static func readKey(in folder: OwnedDescriptor, files: FileSystem) throws -> SecretKey {
    let file = try files.open(keyName, [.readOnly, .noFollow], in: folder)
    let status = try file.status()
    guard status.permissions & 0o077 == 0 else { throw ServerError.serverKeyExposed }
    guard status.kind == .file, status.byteCount == UInt64(SecretKey.byteCount) else {
      throw ServerError.serverKeyDamaged
    }
    let bytes = try SecretBytes(count: SecretKey.byteCount) { buffer in
      guard try file.readFully(into: buffer) == buffer.count else { throw ServerError.serverKeyDamaged }
    }
    return try SecretKey(bytes)
  }
}
