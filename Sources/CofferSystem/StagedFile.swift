internal import CCoffer

#if canImport(Glibc)
  internal import Glibc
#elseif canImport(Darwin)
  internal import Darwin
#endif

/// A file that is written before it has a name. Where the system can, it has none at all until ``publish(as:)``, so
/// that nobody opens it early and no crash leaves it; elsewhere it stands under a random hidden name.
public final class StagedFile {
  public let descriptor: OwnedDescriptor
  private let files: FileSystem
  private let directory: OwnedDescriptor
  /// Nil: the file has no name.
  private var temporaryName: String?

  /// Opens a new file for writing in `directory`.
  public init(in directory: OwnedDescriptor, permissions: UInt16 = 0o600, files: FileSystem) throws(SystemError) {
    self.files = files
    self.directory = directory
    try files.faults?.willCall(.open)
    let number = coffer_open_unnamed(directory.number, mode_t(permissions))
    if number >= 0 {
      descriptor = OwnedDescriptor(number: number, faults: files.faults)
      files.faults?.observe(.openUnnamed(number, in: directory.number))
    } else {
      // File systems without this say so in different ways; whatever else is wrong, the next call says again.
      let name = ".\(Randomness.bytes(16).hexadecimal)"
      descriptor = try files.open(name, [.writeOnly, .createNew], permissions: permissions, in: directory)
      temporaryName = name
    }
  }

  /// Gives the file its name; `false` when the name is taken.
  public func publish(as name: [UInt8]) throws(SystemError) -> Bool {
    if let temporaryName {
      guard try files.renameWithoutReplacing(temporaryName, to: name, in: directory) else { return false }
      self.temporaryName = nil
      return true
    }
    try files.faults?.willCall(.rename)
    if FileSystem.withName(name, { coffer_link_unnamed(descriptor.number, directory.number, $0) }) == 0 {
      files.faults?.observe(.link(descriptor.number, name: name, in: directory.number))
      return true
    }
    if errno == EEXIST { return false }
    throw .last("linkat")
  }

  deinit { if let temporaryName { _ = try? files.unlink(temporaryName, in: directory) } }
}
