/// What a new file, folder or link begins with, beside its kind.
public struct NewNode: Sendable, Hashable {
  /// The twelve permission bits; more are passed over. Whoever makes the node has applied a umask already.
  public var permissions: UInt16
  public var owner: FileOwner

  public init(permissions: UInt16, owner: FileOwner = .process) {
    self.permissions = permissions
    self.owner = owner
  }
}
