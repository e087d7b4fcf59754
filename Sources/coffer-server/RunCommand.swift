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
      Prints one line on standard output when it listens: listening on URL. Without TLS it listens on loopback \
      addresses only.

      Example:
        coffer-server run --data /var/lib/coffer --listen 0.0.0.0:8443 \\
          --tls-certificate chain.pem --tls-key key.pem
      """)

  @OptionGroup var data: DataOptions
  @Option(help: "Where to listen; port 0 lets the system choose.") var listen = ListenAddress.standard
  @Option(help: "A certificate chain in PEM.") var tlsCertificate: String?
  @Option(help: "The certificate's private key in PEM.") var tlsKey: String?

  func validate() throws {
    guard (tlsCertificate == nil) == (tlsKey == nil) else {
      throw ValidationError("Give both --tls-certificate and --tls-key, or neither.")
    }
  }

  func run() async throws {
    try await Failure.reporting {
      try ProcessHardening.apply()
      let tls = try tlsFiles()
      let options = try ServerOptions(host: listen.host, port: listen.port, tls: tls)
      let directory = try DataDirectory(try data.resolved(), creating: true)
      let store = try SQLitePolicyStore(directory)
      let log = MaskedLog(label: "coffer-server")
      let server = PolicyServer(store: store, serverKey: directory.serverKey, log: log)
      let scheme = tls == nil ? "http" : "https"
      try await server.run(options) { port in
        do {
          try StandardOutput.write(line: "listening on \(scheme)://\(listen.urlHost):\(port)")
        } catch {
          log.warning("the address was not printed: \(error: error)")
        }
      }
      try store.close()
      log.notice("stopped")
    }
  }

  /// Opens both files first: an absent one is told as such, whatever the TLS library says of it.
  private func tlsFiles() throws -> ServerOptions.TLS? {
    guard let tlsCertificate, let tlsKey else { return nil }
    for path in [tlsCertificate, tlsKey] { _ = try FileSystem().open(path, .readOnly) }
    return ServerOptions.TLS(certificate: tlsCertificate, key: tlsKey)
  }
}
