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
