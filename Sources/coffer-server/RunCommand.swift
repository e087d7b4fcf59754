internal import ArgumentParser
internal import CofferServer
internal import CofferServerSQLite
internal import CofferSystem
internal import Foundation

/// `coffer-server run`.
struct RunCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "run",
    abstract: "Runs the policy server until SIGTERM or SIGINT.",
    discussion: """
      Prints one line on standard output when it listens: listening on URL. While nobody administers the server, a \
      second line has a link by which the first administrator founds a company: it works once, for a day, and until \
      the next start. Without TLS it listens on loopback addresses only.

      What is not given as an option is taken from the environment: COFFER_SERVER_LISTEN, \
      COFFER_SERVER_TLS_CERTIFICATE, COFFER_SERVER_TLS_KEY, COFFER_SERVER_PUBLIC_URL, \
      COFFER_SERVER_METRICS_SECRET_FILE, COFFER_SERVER_MAXIMUM_CONNECTIONS and \
      COFFER_SERVER_MAXIMUM_CONNECTIONS_PER_ADDRESS.

      Example:
        coffer-server run --data /var/lib/coffer --listen 0.0.0.0:8443 \\
          --tls-certificate chain.pem --tls-key key.pem
      """)

  @OptionGroup var data: DataOptions
  @Option(help: "Where to listen (default: \(ListenAddress.standard)); port 0 lets the system choose.")
  var listen: ListenAddress?
  @Option(help: "A certificate chain in PEM.") var tlsCertificate: String?
  @Option(help: "The certificate's private key in PEM.") var tlsKey: String?
  @Option(help: "Where people reach the server, such as https://coffer.example.com, when a proxy stands in front.")
  var publicURL: String?
  @Option(help: "A file whose first line GET /metrics is asked with as a bearer token; without it there are none.")
  var metricsSecretFile: String?
  @Option(help: "Connections at once, those of listening devices included.") var maximumConnections: Int?
  @Option(help: "Of them, from one address.") var maximumConnectionsPerAddress: Int?

  func run() async throws {
    try await Failure.reporting {
      let environment = Environment(ProcessInfo.processInfo.environment)
      let options = try serverOptions(environment)
      try ProcessHardening.apply()
      // Each connection is a descriptor.
      ProcessHardening.raiseDescriptorLimit()
      let site = try (publicURL ?? environment["PUBLIC_URL"]).map { try Site(publicURL: $0) }
      let metricsSecret = try (metricsSecretFile ?? environment["METRICS_SECRET_FILE"]).map(PasswordFile.read)
      let directory = try DataDirectory(try data.resolved(), creating: true)
      let store = try SQLitePolicyStore(directory, isVerified: true)
      let log = MaskedLog(label: "coffer-server")
      let server = PolicyServer(
        store: store, serverKey: directory.serverKey, site: site ?? Site(isSecure: options.tls != nil),
        metricsSecret: metricsSecret, log: log)
      let scheme = options.tls == nil ? "http" : "https"
      try await server.run(options) { port in
        let url = "\(scheme)://\(ListenAddress(host: options.host, port: port).description)"
        do {
          try StandardOutput.write(line: "listening on \(url)")
          // Not before: a second server that finds the address taken leaves the link of the first as it is.
          let link = try await Administration(store: store, serverKey: directory.serverKey).createSetUpLink()
          if let link { try StandardOutput.write(line: "set up at \(site?.address ?? url)\(link)") }
        } catch {
          log.warning("the address, or the link to set the server up, was not printed: \(error: error)")
        }
      }
      try store.close()
      log.notice("stopped")
    }
  }

  private func serverOptions(_ environment: Environment) throws -> ServerOptions {
    let address = try listen ?? environment.value("LISTEN", ListenAddress.init(argument:)) ?? .standard
    var limits = ServerOptions.Limits()
    func limit(_ given: Int?, _ name: String, _ standard: Int) throws -> Int {
      let value = try given ?? environment.value(name) { Int($0) } ?? standard
      guard (1...1_000_000).contains(value) else { throw ValidationError("Give a number from 1 to 1000000.") }
      return value
    }
    limits.connections = try limit(maximumConnections, "MAXIMUM_CONNECTIONS", limits.connections)
    limits.connectionsFromAddress = try limit(
      maximumConnectionsPerAddress, "MAXIMUM_CONNECTIONS_PER_ADDRESS", limits.connectionsFromAddress)
    return try ServerOptions(host: address.host, port: address.port, tls: try tlsFiles(environment), limits: limits)
  }

  /// Opens both files first: an absent one is told as such, whatever the TLS library says of it.
  private func tlsFiles(_ environment: Environment) throws -> ServerOptions.TLS? {
    let (certificate, key) = (
      tlsCertificate ?? environment["TLS_CERTIFICATE"], tlsKey ?? environment["TLS_KEY"]
    )
    guard (certificate == nil) == (key == nil) else {
      throw ValidationError("Give both --tls-certificate and --tls-key, or neither.")
    }
    guard let certificate, let key else { return nil }
    for path in [certificate, key] { _ = try FileSystem().open(path, .readOnly) }
    return ServerOptions.TLS(certificate: certificate, key: key)
  }
}

/// The variables that stand in for options: `COFFER_SERVER_NAME`.
struct Environment {
  private let variables: [String: String]

  init(_ variables: [String: String]) { self.variables = variables }

  subscript(name: String) -> String? { variables["COFFER_SERVER_\(name)"] }

  /// Throws for a value that `read` does not take: a setting that is passed over would be a surprise.
  func value<Value>(_ name: String, _ read: (String) -> Value?) throws -> Value? {
    guard let text = self[name] else { return nil }
    guard let value = read(text) else { throw ValidationError("COFFER_SERVER_\(name) is not valid.") }
    return value
  }
}
