public import CofferFiles
internal import CofferSystem

/// Named values beside a file's content: at most 256 for a file, each with a name of 1 to 255 bytes and at most 64 KiB.
/// The names are bytes without a meaning to the vault.
extension Vault {
  /// Throws `notFound`, `invalidAttributeName` or `noSuchAttribute`.
  public func extendedAttribute(_ name: [UInt8], of number: InodeNumber) throws(VaultError) -> [UInt8] {
    try look { session in
      try Self.check(name)
      // A file that has none costs no look-up.
      guard try session.node(number).attributeCount > 0 else { throw VaultError.noSuchAttribute }
      let found = try session.extendedAttributes(at: session.rowKeys.attribute(number, name: name), of: number)
      guard let attribute = found.first(where: { $0.name == name }) else { throw VaultError.noSuchAttribute }
      return attribute.value
    }
  }

  /// The names of a file's extended attributes, in no particular order. Throws `notFound`.
  public func extendedAttributeNames(of number: InodeNumber) throws(VaultError) -> [[UInt8]] {
    try look { session in
      guard try session.node(number).attributeCount > 0 else { return [] }
      return try session.extendedAttributeNames(of: number)
    }
  }

  /// Throws `invalidAttributeName`, `attributeTooLarge`, `notFound`, `attributeExists`, `noSuchAttribute` or
  /// `tooManyAttributes`.
  public func setExtendedAttribute(
    _ name: [UInt8], of number: InodeNumber, to value: [UInt8], mode: AttributeMode = .createOrReplace
  ) throws(VaultError) {
    try change(adding: .rows) { session in
      try Self.check(name)
      guard value.count <= VaultFormat.attributeValueLimit else { throw VaultError.attributeTooLarge }
      var inode = try session.node(number)
      let key = session.rowKeys.attribute(number, name: name)
      var found = inode.attributeCount > 0 ? try session.extendedAttributes(at: key, of: number) : []
      if let position = found.firstIndex(where: { $0.name == name }) {
        guard mode != .create else { throw VaultError.attributeExists }
        if value.count > found[position].value.count { try session.requireRoom() }
        found[position].value = value
      } else {
        guard mode != .replace else { throw VaultError.noSuchAttribute }
        guard inode.attributeCount < VaultFormat.attributeLimit else { throw VaultError.tooManyAttributes }
        try session.requireRoom()
        found.append(ExtendedAttribute(name: name, value: value))
        inode.attributeCount += 1
      }
      try session.store(found, at: key, of: number)
      inode.changed = time.now()
      try session.store(inode)
      session.note(.attributes(of: number))
    }
  }

  /// Throws `invalidAttributeName`, `notFound` or `noSuchAttribute`.
  public func removeExtendedAttribute(_ name: [UInt8], of number: InodeNumber) throws(VaultError) {
    try change { session in
      try Self.check(name)
      var inode = try session.node(number)
      guard inode.attributeCount > 0 else { throw VaultError.noSuchAttribute }
      let key = session.rowKeys.attribute(number, name: name)
      var found = try session.extendedAttributes(at: key, of: number)
      guard let position = found.firstIndex(where: { $0.name == name }) else { throw VaultError.noSuchAttribute }
      found.remove(at: position)
      try session.store(found, at: key, of: number)
      inode.attributeCount -= 1
      inode.changed = time.now()
      try session.store(inode)
      session.note(.attributes(of: number))
    }
  }

  private static func check(_ name: [UInt8]) throws(VaultError) {
    guard (1...VaultFormat.attributeNameLimit).contains(name.count), !name.contains(0) else {
      throw .invalidAttributeName
    }
  }
}
