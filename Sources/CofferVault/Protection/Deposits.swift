internal import CofferFiles
internal import CofferSystem
internal import Synchronization

/// Files that were stored while the vault was locked: their records are marked until the next unlock.
extension Vault {
  /// Makes them complete. Their keys stay the same: who could read them before can read them after.
  func completeDeposits() throws {
    for number in try index.read({ try $0.deposits() }) {
      try change { session in
        try session.removeDeposit(number)
        // It may be gone, or have been given another class.
        guard var inode = try session.inodeIfPresent(number), inode.protection == .completeUnlessOpen else { return }
        let key = try self.keys.unwrap(inode.wrappedKey, for: .completeUnlessOpen)
        inode.protection = .complete
        inode.wrappedKey = try self.keys.wrap(key, for: .complete)
        try session.store(inode)
        let protected = ProtectedKey(inode)
        session.afterOperation { self.files.node(number)?.didProtect(protected) }
      }
    }
  }
}

extension IndexSession {
  func addDeposit(_ number: InodeNumber) throws {
    try set(.deposit, rowKeys.deposit(number), Padding.pad(number.value.bigEndianBytes))
  }

  func removeDeposit(_ number: InodeNumber) throws { try remove(.deposit, rowKeys.deposit(number)) }

  func deposits() throws -> [InodeNumber] {
    var result: [InodeNumber] = []
    var last: RowKey?
    repeat {
      let found = try rows(.deposit, prefix: rowKeys.depositPrefix, after: last, limit: 4096)
      result += try found.map { try InodeNumber(deposit: $0.1) }
      last = found.last?.0
    } while last != nil
    return result
  }
}

extension InodeNumber {
  /// From a deposit's mark.
  init(deposit bytes: [UInt8]) throws {
    var reader = ByteReader(try Padding.unpad(bytes))
    self.init(value: try reader.read())
    try reader.finish()
  }
}

extension FileNode {
  /// The record has the key wrapped for another class.
  func didProtect(_ key: ProtectedKey) { state.withLock { _ in protectedKey = key } }
}
