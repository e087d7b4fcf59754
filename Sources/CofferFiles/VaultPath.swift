/// A place in a vault: names from the root folder down. Names are byte strings, as POSIX has them.
public struct VaultPath: Hashable, Sendable {
  public let names: [[UInt8]]

  /// Bytes in a name at most.
  public static let nameLimit = 255

  public static let root = VaultPath(names: [])

  private init(names: [[UInt8]]) { self.names = names }

  /// Parses `a/b/c`, with or without a leading slash; empty names and a trailing slash are passed over.
  ///
  /// Throws ``InvalidName`` for `.` and `..`, a zero byte, or a name of more than 255 bytes: a path in a vault is never
  /// relative to anything, so those are mistakes.
  public init(_ bytes: some Sequence<UInt8>) throws(InvalidName) {
    var names: [[UInt8]] = []
    for name in Array(bytes).split(separator: UInt8(ascii: "/")) { names.append(try Self.checked(Array(name))) }
    self.names = names
  }

  public init(_ text: String) throws(InvalidName) { try self.init(text.utf8) }

  /// The path of `name` in this folder. Throws ``InvalidName``.
  public func appending(_ name: [UInt8]) throws(InvalidName) -> VaultPath {
    VaultPath(names: names + [try Self.checked(name)])
  }

  public var parent: VaultPath { VaultPath(names: Array(names.dropLast())) }
  public var lastName: [UInt8]? { names.last }

  /// The name itself, if a file in a vault can have it. Throws ``InvalidName``.
  public static func checked(_ name: [UInt8]) throws(InvalidName) -> [UInt8] {
    guard !name.isEmpty, name.count <= Self.nameLimit, !name.contains(0), !name.contains(UInt8(ascii: "/")),
      name != [46], name != [46, 46]
    else { throw InvalidName() }
    return name
  }

  /// The path of the first `count` names.
  public func prefix(_ count: Int) -> VaultPath { VaultPath(names: Array(names.prefix(count))) }
}

/// A name that no file in a vault can have.
public struct InvalidName: Error, Equatable, Sendable, CustomStringConvertible {
  public init() {}

  public var description: String {
    "a name must have 1 to 255 bytes, without slash or zero byte, and not be . or .."
  }
}
