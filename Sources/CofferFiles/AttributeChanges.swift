public import CofferSystem

/// Which attributes of a file or folder shall change, and to what. What is nil stays.
public struct AttributeChanges: Sendable, Hashable {
  /// A time that is given, or the moment at which the change is made.
  public enum Time: Sendable, Hashable {
    case now
    case at(Timestamp)
  }

  /// The twelve permission bits; more are passed over.
  public var permissions: UInt16?
  public var user: UInt32?
  public var group: UInt32?
  public var accessed: Time?
  public var modified: Time?
  public var created: Time?

  public init(
    permissions: UInt16? = nil, user: UInt32? = nil, group: UInt32? = nil, accessed: Time? = nil,
    modified: Time? = nil, created: Time? = nil
  ) {
    self.permissions = permissions
    self.user = user
    self.group = group
    self.accessed = accessed
    self.modified = modified
    self.created = created
  }

  public var isEmpty: Bool { self == AttributeChanges() }
}

extension FileAttributes {
  /// What a file of these attributes has when they are changed at `now`.
  public func applying(_ changes: AttributeChanges, at now: Timestamp) -> FileAttributes {
    func time(_ change: AttributeChanges.Time?, _ present: Timestamp) -> Timestamp {
      switch change {
      case nil: present
      case .now: now
      case .at(let time): time
      }
    }
    return FileAttributes(
      number: number, kind: kind, byteCount: byteCount, storedByteCount: storedByteCount,
      permissions: changes.permissions.map { $0 & 0o7777 } ?? permissions,
      owner: FileOwner(user: changes.user ?? owner.user, group: changes.group ?? owner.group), linkCount: linkCount,
      accessed: time(changes.accessed, accessed), modified: time(changes.modified, modified), changed: now,
      created: time(changes.created, created), protection: protection, revision: revision)
  }
}
