/// A person's signed-in browser. The cookie's text is sent once and only its hash is kept. Times are seconds since 1970.
public struct Session: Sendable {
  /// A session ends after this long whatever happens.
  public static let lifetime: Int64 = 12 * 3600
  /// And after this long without a request.
  public static let idleTime: Int64 = 30 * 60
  /// A session that began later than so many seconds from now was begun by a clock that was ahead.
  public static let tolerance = Lifetime.tolerance
  /// How often a session that is used is noted as such.
  static let notedEvery: Int64 = 60

  public let id: String
  public let tenant: String
  /// The administrator's id.
  public let administrator: String
  public let createdAt: Int64
  public let lastSeenAt: Int64

  public init(id: String, tenant: String, administrator: String, createdAt: Int64, lastSeenAt: Int64) {
    self.id = id
    self.tenant = tenant
    self.administrator = administrator
    self.createdAt = createdAt
    self.lastSeenAt = lastSeenAt
  }

  public var expiresAt: Int64 { createdAt + Self.lifetime }

  /// Also not when the clock was set back to before its time: what is not certain is over.
  public func isValid(at now: Int64) -> Bool {
    now >= createdAt && now < expiresAt && now < lastSeenAt + Self.idleTime
  }
}
