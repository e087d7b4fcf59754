import CofferFiles
import CofferSystem
import CofferVault

/// Operations on attributes.
extension NamespaceModel {
  /// chmod, chown, utimensat.
  mutating func setAttributes(_ changes: AttributeChanges, of number: InodeNumber) throws(VaultError) -> FileAttributes
  {
    let node = try node(number)
    if changes == AttributeChanges() { return node.attributes }
    for case .at(let time)? in [changes.accessed, changes.modified, changes.created]
    where time.nanoseconds > 999_999_999 { throw .invalidTime }  // EINVAL
    func moment(_ time: AttributeChanges.Time?, _ old: Timestamp) -> Timestamp {
      switch time {
      case nil: old
      case .now: now
      case .at(let time): time
      }
    }
    node.permissions = changes.permissions.map { $0 & 0o7777 } ?? node.permissions
    node.owner.user = changes.user ?? node.owner.user
    node.owner.group = changes.group ?? node.owner.group
    node.accessed = moment(changes.accessed, node.accessed)
    node.modified = moment(changes.modified, node.modified)
    node.created = moment(changes.created, node.created)
    node.changed = now
    return node.attributes
  }

  /// readlink.
  func readLink(_ number: InodeNumber) throws(VaultError) -> [UInt8] {
    let node = try node(number)
    guard node.kind == .symbolicLink else { throw .wrongKind }  // EINVAL
    return node.target
  }

  private func checkAttribute(_ name: [UInt8]) throws(VaultError) {
    if name.isEmpty || name.count > 255 || name.contains(0) { throw .invalidAttributeName }  // ERANGE
  }

  /// setxattr.
  mutating func setExtended(_ name: [UInt8], of number: InodeNumber, to value: [UInt8], _ mode: AttributeMode)
    throws(VaultError)
  {
    try checkAttribute(name)
    guard value.count <= 65_536 else { throw .attributeTooLarge }  // E2BIG
    let node = try node(number)
    if mode == .create, node.extended[name] != nil { throw .attributeExists }  // EEXIST
    if mode == .replace, node.extended[name] == nil { throw .noSuchAttribute }  // ENODATA
    if node.extended[name] == nil, node.extended.count == 256 { throw .tooManyAttributes }  // ENOSPC
    node.extended[name] = value
    node.changed = now
  }

  /// getxattr.
  func extended(_ name: [UInt8], of number: InodeNumber) throws(VaultError) -> [UInt8] {
    try checkAttribute(name)
    guard let value = try node(number).extended[name] else { throw .noSuchAttribute }  // ENODATA
    return value
  }

  /// removexattr.
  mutating func removeExtended(_ name: [UInt8], of number: InodeNumber) throws(VaultError) {
    try checkAttribute(name)
    let node = try node(number)
    guard node.extended[name] != nil else { throw .noSuchAttribute }  // ENODATA
    node.extended[name] = nil
    node.changed = now
  }
}
