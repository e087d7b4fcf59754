/// What a company decided: the payload of a signed bundle. Times are seconds since 1970.
public struct Policy: Codable, Hashable, Sendable {
  /// The only schema that this version reads.
  public static let currentSchema = 1
  /// The audience of a bundle for every device of the company.
  public static let everyDevice = "devices"

  public var schema: Int
  public var tenant: String
  /// ``everyDevice``, or the id of one device.
  public var audience: String
  /// Counts up from 1 with every change, within ``keyEpoch``.
  public var revision: Int64
  /// The epoch of the keyset that it is signed with.
  public var keyEpoch: Int64
  public var issuedAt: Int64
  /// A device does not begin to apply it later than this.
  public var notAfter: Int64
  /// The digest of the bundle before this one, absent in the first.
  public var prevHash: String?
  public var apps: [AppApproval]
  public var rules: [Rule]
  public var classifications: [Classification]
  public var fileTypes: [FileType]
  public var settings: Settings
  public var grace: Grace
  /// Orders to a device travel in documents of their own. The list is part of the schema and is empty: a device must
  /// not take a bundle whose orders it would pass over in silence.
  private var commands: [String] = []

  public init(
    tenant: String, audience: String = Policy.everyDevice, revision: Int64, keyEpoch: Int64, issuedAt: Int64,
    notAfter: Int64, prevHash: String?, apps: [AppApproval] = [], rules: [Rule] = [],
    classifications: [Classification] = [], fileTypes: [FileType] = [], settings: Settings = .initial,
    grace: Grace = .initial
  ) {
    schema = Policy.currentSchema
    self.tenant = tenant
    self.audience = audience
    self.revision = revision
    self.keyEpoch = keyEpoch
    self.issuedAt = issuedAt
    self.notAfter = notAfter
    self.prevHash = prevHash
    self.apps = apps
    self.rules = rules
    self.classifications = classifications
    self.fileTypes = fileTypes
    self.settings = settings
    self.grace = grace
  }

  var hasCommands: Bool { !commands.isEmpty }
}
