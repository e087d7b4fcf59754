internal import CofferCrypto
internal import CofferSystem
internal import NIOCore
internal import NIOSSL
internal import Synchronization

/// The certificate chain and key that the next handshake uses. They are read anew while the server runs; connections that
/// are there keep what they began with.
final class TLSCredentials: Sendable {
  /// What a look at the files came to.
  enum Outcome: Equatable {
    /// They hold what they held when they were looked at last, good or bad.
    case unchanged
    case replaced
    /// They cannot be used, and the earlier ones stay.
    case refused
  }

  private struct Pair: Sendable {
    let chain: [NIOSSLCertificate]
    let key: NIOSSLPrivateKey

    /// Throws unless both can be read and belong together.
    init(_ contents: Contents) throws {
      chain = try NIOSSLCertificate.fromPEMBytes(contents.certificate)
      key = try NIOSSLPrivateKey(bytes: contents.key, format: .pem)
      guard !chain.isEmpty else { throw NIOSSLError.failedToLoadCertificate }
      _ = try NIOSSLContext(configuration: configuration)
    }

    var configuration: TLSConfiguration {
      var configuration = TLSConfiguration.makeServerConfiguration(
        certificateChain: chain.map { .certificate($0) }, privateKey: .privateKey(key))
      configuration.minimumTLSVersion = .tlsv12
      configuration.applicationProtocols = ["http/1.1"]
      return configuration
    }
  }

  private struct Contents {
    static let limit = 1 << 20
    let certificate: [UInt8]
    let key: [UInt8]

    init(_ files: ServerOptions.TLS) throws {
      certificate = try FileSystem().open(files.certificate, .readOnly).contents(limit: Self.limit)
      key = try FileSystem().open(files.key, .readOnly).contents(limit: Self.limit)
    }

    var digest: [UInt8] { Digest.sha256(Digest.sha256(certificate) + Digest.sha256(key)) }
  }

  private struct State {
    var pair: Pair
    /// Of what was read last, good or bad; nil is what could not be read.
    var seen: [UInt8]?
  }

  private let files: ServerOptions.TLS
  private let state: Mutex<State>

  /// Throws `ServerError.invalidTLS` for files that no server can use.
  init(_ files: ServerOptions.TLS) throws(ServerError) {
    self.files = files
    do {
      let contents = try Contents(files)
      state = Mutex(State(pair: try Pair(contents), seen: contents.digest))
    } catch {
      throw .invalidTLS("the certificate chain or its key cannot be read as PEM, or they do not belong together")
    }
  }

  /// Reads the files again.
  ///
  /// - Parameter isAsked: whether somebody asked for it, who wants to hear of a bad pair again.
  func refresh(isAsked: Bool) -> Outcome {
    let contents = try? Contents(files)
    let digest = contents?.digest
    guard isAsked || state.withLock({ $0.seen != digest }) else { return .unchanged }
    let pair = contents.flatMap { try? Pair($0) }
    return state.withLock { state in
      state.seen = digest
      guard let pair else { return .refused }
      state.pair = pair
      return .replaced
    }
  }

  /// What a server is set up with: each handshake asks here for its pair.
  var configuration: TLSConfiguration {
    var configuration = state.withLock { $0.pair }.configuration
    configuration.sslContextCallback = { [self] _, promise in
      let pair = state.withLock { $0.pair }
      var override = NIOSSLContextConfigurationOverride()
      override.certificateChain = pair.chain.map { .certificate($0) }
      override.privateKey = .privateKey(pair.key)
      promise.succeed(override)
    }
    return configuration
  }
}
