/// The number of a file, folder or link, never used twice in a vault.
public struct InodeNumber: Hashable, Sendable {
  public let value: UInt64

  public init(value: UInt64) { self.value = value }

  public static let rootFolder = InodeNumber(value: 1)
}
