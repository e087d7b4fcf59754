/// Why the server or its administration does not do what it was asked. Holds no secret, no path and no name.
public enum ServerError: Error, Equatable, Sendable, CustomStringConvertible {
  case noDataDirectory
  case dataDirectoryNotEmpty
  case serverKeyMissing
  case serverKeyExposed
  case serverKeyDamaged
  case noSuchTenant
  case tenantExists
  case administratorExists
  /// An argument is not acceptable. The text says which, and what is.
  case invalid(String)
  /// The signed policy would be larger than devices accept.
  case policyTooLarge
  /// The named part of the policy is not as devices accept it.
  case policyInvalid(String)
  /// An audit's export is not what the company recorded: which entry, and how.
  case auditDamaged(String)
  /// A backup is not put where there is something.
  case backupExists
  /// Tokens and policies would cross a network in the clear.
  case plainHTTPBeyondLoopback
  /// The TLS certificate chain or its key cannot be used.
  case invalidTLS(String)
  /// The address cannot be listened on.
  case cannotListen(String)

  public var description: String {
    switch self {
    case .noDataDirectory: "there is no data directory here; coffer-server tenant create makes one, or give --data"
    case .dataDirectoryNotEmpty: "the data directory holds other files; give an empty or a new one"
    case .serverKeyMissing:
      "server.key is missing beside coffer.sqlite; restore it from a backup: without it no policy can be signed"
    case .serverKeyExposed:
      "server.key can be read by others; make sure that nobody copied it, then run chmod 600 on it"
    case .serverKeyDamaged: "server.key does not hold a key; restore it from a backup"
    case .noSuchTenant: "there is no such tenant; coffer-server tenant create makes one"
    case .tenantExists: "a tenant of this name exists"
    case .administratorExists: "the tenant has an administrator with this address"
    case .invalid(let what): what
    case .policyTooLarge: "the policy would be larger than devices accept; remove apps that are not needed"
    case .policyInvalid(let part): "devices would not accept the policy: \(part)"
    case .auditDamaged(let what): what
    case .backupExists: "there is something at this place already; name another"
    case .plainHTTPBeyondLoopback:
      "plain HTTP is served on loopback addresses only; give --tls-certificate and --tls-key, or listen on 127.0.0.1"
    case .invalidTLS(let what): "TLS: \(what)"
    case .cannotListen(let why): "cannot listen on this address: \(why)"
    }
  }
}
