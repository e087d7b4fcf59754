public import CofferFiles
public import CofferSystem
internal import CofferVault

/// Attributes of files and folders, and the space that there is.
extension ContainerView {
  public func attributes(of number: InodeNumber) throws(ViewError) -> FileAttributes {
    try perform(.reading, on: number) { try $0.attributes(of: number) }
  }

  /// Makes all changes in one step, and returns what is then.
  public func setAttributes(_ changes: AttributeChanges, of number: InodeNumber) throws(ViewError) -> FileAttributes {
    try perform(.writing, on: number) { try $0.setAttributes(changes, of: number) }
  }

  /// Takes from whatever is no folder what gives whoever runs it another identity: the set-user-ID bit, the set-group-ID bit
  /// where its group may run it or `isMember` says that who changes it is not of its group, and its capabilities.
  public func dropPrivileges(of number: InodeNumber, isMember: (_ group: UInt32) -> Bool) throws(ViewError) {
    try perform(.writing, on: number) { vault in
      let found = try vault.attributes(of: number)
      guard found.kind != .directory else { return }
      let bits = found.permissions & 0o6000
      let losesGroup = bits & 0o2000 != 0 && (found.permissions & 0o010 != 0 || !isMember(found.owner.group))
      let lost = losesGroup ? bits : bits & 0o4000
      if lost != 0 { try vault.setAttributes(AttributeChanges(permissions: found.permissions & ~lost), of: number) }
      if found.kind == .file { try Self.dropCapabilities(of: number, in: vault) }
    }
  }

  /// Takes a file's capabilities (capabilities(7)) from it.
  public func dropCapabilities(of number: InodeNumber) throws(ViewError) {
    try perform(.writing, on: number) { try Self.dropCapabilities(of: number, in: $0) }
  }

  private static func dropCapabilities(of number: InodeNumber, in vault: Vault) throws {
    do {
      _ = try vault.extendedAttribute(capabilities, of: number)
      try vault.removeExtendedAttribute(capabilities, of: number)
    } catch VaultError.noSuchAttribute {}
  }

  private static let capabilities = Array("security.capability".utf8)

  /// Throws `noSuchAttribute`.
  public func extendedAttribute(_ name: [UInt8], of number: InodeNumber) throws(ViewError) -> [UInt8] {
    try perform(.reading, on: number) { try $0.extendedAttribute(name, of: number) }
  }

  public func extendedAttributeNames(of number: InodeNumber) throws(ViewError) -> [[UInt8]] {
    try perform(.reading, on: number) { try $0.extendedAttributeNames(of: number) }
  }

  public func setExtendedAttribute(
    _ name: [UInt8], of number: InodeNumber, to value: [UInt8], mode: AttributeMode
  ) throws(ViewError) {
    try perform(.writing, on: number) { try $0.setExtendedAttribute(name, of: number, to: value, mode: mode) }
  }

  public func removeExtendedAttribute(_ name: [UInt8], of number: InodeNumber) throws(ViewError) {
    try perform(.writing, on: number) { try $0.removeExtendedAttribute(name, of: number) }
  }

  /// Room on the disk that the vault lies on.
  public func space() throws(ViewError) -> FileSystemSpace {
    try perform(.reading, on: root) { try $0.space() }
  }

  /// Makes names and attributes durable.
  public func commitNames() throws(ViewError) { try perform(.reading, on: root) { try $0.commitNames() } }
}
