/// What a company set for all its devices.
public struct Settings: Codable, Hashable, Sendable {
  /// What the device's owner may do without an app, such as `import` or `saveCopy`.
  public var ownerActions: [Action]
  /// Whether apps that only a bundle id identifies may receive anything.
  public var allowFilteredTier: Bool
  /// The configuration profile by name, as it is signed; ``managedSettings`` reads it. Absent is none.
  public var managed: [String: JSONValue]?

  public init(ownerActions: [Action], allowFilteredTier: Bool, managed: [String: JSONValue]? = nil) {
    self.ownerActions = ownerActions
    self.allowFilteredTier = allowFilteredTier
    self.managed = managed
  }

  /// A new company's: nothing leaves the container until an administrator says so.
  public static let initial = Settings(ownerActions: [.import, .view, .edit], allowFilteredTier: false)
}

/// How long a device decides by a policy that its company has not confirmed again, in seconds.
public struct Grace: Codable, Hashable, Sendable {
  /// From this age on, decisions carry a warning.
  public var warnAfter: Int64
  /// Beyond this age, everything is refused.
  public var blockAfter: Int64

  public init(warnAfter: Int64, blockAfter: Int64) {
    self.warnAfter = warnAfter
    self.blockAfter = blockAfter
  }

  /// Three days, and two weeks.
  public static let initial = Grace(warnAfter: 3 * 86_400, blockAfter: 14 * 86_400)
}

/// A label that a file can carry.
public struct Classification: Codable, Hashable, Sendable {
  public var id: String
  public var name: String

  public init(id: String, name: String) {
    self.id = id
    self.name = name
  }
}

/// A file type that a company adds to those of ``ContentType``.
public struct FileType: Codable, Hashable, Sendable {
  /// Lower case, without the dot; none of the built-in ones.
  public var `extension`: String
  /// What the content may be recognised as, such as `image/vnd.dwg`.
  public var mediaTypes: [String]

  public init(extension: String, mediaTypes: [String]) {
    self.extension = `extension`
    self.mediaTypes = mediaTypes
  }
}
