internal import CofferSystem
internal import Hummingbird
internal import HummingbirdCore
internal import HummingbirdTLS
internal import NIOCore
internal import NIOSSL
internal import ServiceLifecycle
internal import UnixSignals

extension PolicyServer {
  /// Bounds for all connections together, below the usual limit of 1024 descriptors, and for each that stays silent.
  private static let maximumConnections = 768
  private static let idleSeconds: Int64 = 60

  /// Serves until SIGTERM or SIGINT, then finishes the requests under way and returns.
  ///
  /// - Parameter onListening: called once with the port, which the system may have chosen.
  /// - Throws: `ServerError.invalidTLS`, `.cannotListen`.
  public func run(_ options: ServerOptions, onListening: @escaping @Sendable (Int) -> Void) async throws {
    do {
      try await application(options, onListening: onListening).runService(gracefulShutdownSignals: [.sigterm, .sigint])
    } catch let error as IOError {
      throw ServerError.cannotListen("\(SystemError(code: error.errnoCode, call: "bind"))")
    }
  }

  func application(
    _ options: ServerOptions, onListening: @escaping @Sendable (Int) -> Void
  ) throws(ServerError) -> some ApplicationProtocol {
    Application(
      router: router, server: try Self.builder(options.tls),
      configuration: ApplicationConfiguration(
        address: .hostname(options.host, port: options.port),
        availableConnectionsDelegate: MaximumAvailableConnections(Self.maximumConnections)),
      onServerRunning: { channel in onListening(channel.localAddress?.port ?? options.port) },
      logger: log.forLibraries)
  }

  private static func builder(_ tls: ServerOptions.TLS?) throws(ServerError) -> HTTPServerBuilder {
    let plain = HTTPServerBuilder.http1(configuration: .init(idleTimeout: .seconds(idleSeconds)))
    guard let tls else { return plain }
    do {
      var configuration = TLSConfiguration.makeServerConfiguration(
        certificateChain: try NIOSSLCertificate.fromPEMFile(tls.certificate).map { .certificate($0) },
        privateKey: .privateKey(try NIOSSLPrivateKey(file: tls.key, format: .pem)))
      configuration.minimumTLSVersion = .tlsv12
      configuration.applicationProtocols = ["http/1.1"]
      return try .tls(plain, tlsConfiguration: configuration)
    } catch {
      throw .invalidTLS("the certificate chain or its key cannot be read as PEM, or they do not belong together")
    }
  }
}
