internal import CofferSystem
internal import Hummingbird
internal import HummingbirdCore
internal import HummingbirdTLS
internal import NIOCore
internal import ServiceLifecycle
internal import UnixSignals

extension PolicyServer {
  /// Serves until SIGTERM or SIGINT, then ends the streams of events at once, finishes the requests under way and
  /// returns.
  ///
  /// - Parameter onListening: called once with the port, which the system may have chosen.
  /// - Throws: `ServerError.invalidTLS`, `.cannotListen`.
  public func run(_ options: ServerOptions, onListening: @escaping @Sendable (Int) async -> Void) async throws {
    let credentials = try options.tls.map(TLSCredentials.init)
    // The last one stops first: the streams must have ended before the server waits for its requests, and what it refuses until
    // then is to be recorded as well.
    let services: [any Service] = [
      RecordService(server: self), try application(options, credentials, onListening: onListening),
      EventService(server: self), TLSService(credentials: credentials, log: log),
    ]
    var configuration = ServiceGroupConfiguration(
      services: services, gracefulShutdownSignals: [.sigterm, .sigint], logger: log.forLibraries)
    configuration.maximumGracefulShutdownDuration = .seconds(options.limits.shutdownSeconds)
    do {
      try await ServiceGroup(configuration: configuration).run()
    } catch let error as IOError {
      throw ServerError.cannotListen("\(SystemError(code: error.errnoCode, call: "bind"))")
    }
  }

  /// - Parameter credentials: those of `options`; without them, they are read once.
  func application(
    _ options: ServerOptions, _ credentials: TLSCredentials? = nil, onListening: @escaping @Sendable (Int) async -> Void
  ) throws(ServerError) -> some ApplicationProtocol {
    Application(
      responder: StreamingResponder(inner: router.buildResponder()), server: try Self.builder(options, credentials),
      configuration: ApplicationConfiguration(
        address: .hostname(options.host, port: options.port), backlog: 4096,
        availableConnectionsDelegate: MaximumAvailableConnections(options.limits.connections)),
      onServerRunning: { channel in await onListening(channel.localAddress?.port ?? options.port) },
      logger: log.forLibraries)
  }

  private static func builder(
    _ options: ServerOptions, _ credentials: TLSCredentials?
  ) throws(ServerError) -> HTTPServerBuilder {
    let limits = options.limits
    let counts = ConnectionCounts(limit: limits.connectionsFromAddress)
    let plain = HTTPServerBuilder.http1(
      configuration: .init(
        additionalChannelHandlers: [
          ConnectionGuard(
            counts: counts, requestTime: .seconds(limits.requestSeconds), answerTime: .seconds(limits.answerSeconds))
        ],
        idleTimeout: .seconds(limits.idleSeconds),
        httpDecoderConfiguration: .init(
          maxHeaderFieldSize: limits.headerBytes, maxHeaderListSize: limits.headerBytes, maxHeaderFieldCount: 100)))
    guard let tls = options.tls else { return plain }
    let pair: TLSCredentials
    if let credentials { pair = credentials } else { pair = try TLSCredentials(tls) }
    do {
      return try .tls(plain, tlsConfiguration: pair.configuration)
    } catch {
      throw .invalidTLS("the certificate chain and its key cannot be used")
    }
  }
}

/// Ends approvals when their time is over, and writes into the audits what nobody asks for.
private struct RecordService: Service {
  let server: PolicyServer

  func run() async throws {
    await cancelWhenGracefulShutdown {
      while !Task.isCancelled {
        do { try await Task.sleep(for: .seconds(5)) } catch { break }
        await server.endApprovals()
        await server.recordRefusedSignIns()
      }
    }
    // Also where the server was told to wait no longer for its requests.
    await Task { await server.recordRefusedSignIns(all: true) }.value
  }
}

/// Counts the seconds of the streams of events and of those that wait in a line, and ends them when the server is to stop.
private struct EventService: Service {
  let server: PolicyServer

  private var hubs: [EventHub] { [server.events, server.watchers.hub] }

  func run() async throws {
    await withGracefulShutdownHandler {
      await cancelWhenGracefulShutdown {
        while !Task.isCancelled {
          do { try await Task.sleep(for: .seconds(1)) } catch { break }
          for hub in hubs { hub.tick() }
          server.store.tick()
          server.passwords.tick()
        }
      }
    } onGracefulShutdown: {
      for hub in hubs { hub.close() }
    }
  }
}
