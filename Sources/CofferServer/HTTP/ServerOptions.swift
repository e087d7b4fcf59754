/// Where and how the server listens, and what it bears.
public struct ServerOptions: Sendable {
  /// PEM files of a certificate chain and its key.
  public struct TLS: Sendable {
    public let certificate: String
    public let key: String

    public init(certificate: String, key: String) {
      self.certificate = certificate
      self.key = key
    }
  }

  /// Bounds on what clients may take.
  public struct Limits: Sendable {
    /// Connections at once. An idle one of a device that listens for events costs some KiB.
    public var connections = 12_000
    /// Of them, from one address, or one /64 of IPv6. Loopback is not counted: a proxy stands there.
    public var connectionsFromAddress = 2_000
    /// Seconds that a connection may stay silent between requests.
    public var idleSeconds: Int64 = 60
    /// Seconds from a request's first line to the end of its body.
    public var requestSeconds: Int64 = 60
    /// Seconds in which a client takes of an answer what waits for it.
    public var answerSeconds: Int64 = 60
    /// Bytes of all header fields of a request.
    public var headerBytes = 16 << 10
    /// Seconds that requests under way get to end when the server stops.
    public var shutdownSeconds: Int64 = 10

    public init() {}
  }

  /// An address or a name of this machine.
  public let host: String
  /// 0 lets the system choose.
  public let port: Int
  public let tls: TLS?
  public let limits: Limits

  /// Throws `ServerError.plainHTTPBeyondLoopback` without TLS on another address than loopback.
  public init(host: String, port: Int, tls: TLS? = nil, limits: Limits = Limits()) throws(ServerError) {
    guard tls != nil || LoopbackAddress.isLoopback(host) else { throw .plainHTTPBeyondLoopback }
    self.host = host
    self.port = port
    self.tls = tls
    self.limits = limits
  }
}
