internal import CofferSystem

/// Named values that belong to the vault and are sealed with it: what an embedding program must not keep in the open.
extension Vault {
  /// Largest value.
  public static let settingLimit = 8 << 20
  private static let settingNameLimit = 1024

  public func setting(_ name: String) throws(VaultError) -> [UInt8]? {
    try look { try Self.setting(name, in: $0) }
  }

  static func setting(_ name: String, in session: IndexSession) throws -> [UInt8]? {
    guard let bytes = try session.value(.setting, session.rowKeys.setting(name)) else { return nil }
    let (found, value) = try decode(bytes)
    guard found == name else { throw VaultError.damaged(what: "a setting") }
    return value
  }

  /// Stores a value, or removes it where `value` is nil.
  public func setSetting(_ name: String, to value: [UInt8]?) throws(VaultError) {
    try change { session in
      let key = session.rowKeys.setting(name)
      guard let value else { return try session.remove(.setting, key) }
      guard value.count <= Self.settingLimit, name.utf8.count <= Self.settingNameLimit else {
        throw VaultError.settingTooLarge
      }
      var writer = ByteWriter()
      writer.write(counted: Array(name.utf8))
      writer.write(counted: value)
      try session.set(.setting, key, Padding.pad(writer.bytes))
    }
  }

  /// The names that begin with `prefix`, sorted.
  public func settingNames(prefix: String) throws(VaultError) -> [String] {
    try look { session in
      var names: [String] = []
      var last: RowKey?
      repeat {
        let found = try session.rows(.setting, prefix: session.rowKeys.settingPrefix, after: last, limit: 64)
        names += try found.map { try Self.decode($0.1).name }
        last = found.last?.0
      } while last != nil
      return names.filter { $0.hasPrefix(prefix) }.sorted()
    }
  }

  static func decode(_ bytes: [UInt8]) throws -> (name: String, value: [UInt8]) {
    var reader = ByteReader(try Padding.unpad(bytes))
    let name = String(decoding: try reader.read(countedUpTo: settingNameLimit), as: UTF8.self)
    let value = try reader.read(countedUpTo: settingLimit)
    try reader.finish()
    return (name, value)
  }
}
