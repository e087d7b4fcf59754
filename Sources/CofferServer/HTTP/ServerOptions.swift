/// Where and how the server listens.
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

  /// An address or a name of this machine.
  public let host: String
  /// 0 lets the system choose.
  public let port: Int
  public let tls: TLS?

  /// Throws `ServerError.plainHTTPBeyondLoopback` without TLS on another address than loopback.
  public init(host: String, port: Int, tls: TLS? = nil) throws(ServerError) {
    guard tls != nil || LoopbackAddress.isLoopback(host) else { throw .plainHTTPBeyondLoopback }
    self.host = host
    self.port = port
    self.tls = tls
  }
}
