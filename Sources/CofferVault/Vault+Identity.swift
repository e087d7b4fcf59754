public import CofferKeys
public import CofferSystem

extension Vault {
  /// The id that a folder says it is the vault of, in the open and before any key; nil where it is no vault that this
  /// version can open. Who opens it learns whether it is true.
  public static func statedID(at path: String, files: FileSystem = FileSystem()) -> VaultID? {
    guard let descriptor = try? files.open(path, .directory) else { return nil }
    let folder = VaultFolder(files: files, path: path, descriptor: descriptor)
    guard let bytes = try? folder.contents(of: VaultFormat.description) else { return nil }
    return try? VaultDescription(parsing: bytes).id
  }
}

extension Vault {
  /// The room on the file system that the vault lies on.
  public func space() throws(VaultError) -> FileSystemSpace {
    try VaultError.catching { try folder.descriptor.space() }
  }
}
