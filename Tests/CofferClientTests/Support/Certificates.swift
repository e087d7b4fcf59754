import CofferTestSupport
import Foundation
import NIOSSL

/// Certificates made by `openssl` for one test.
struct Certificates {
  struct Certificate {
    let path: String
    let keyPath: String

    var pem: [UInt8] { get throws { Array(try Data(contentsOf: URL(fileURLWithPath: path))) } }
    var der: [UInt8] { get throws { try NIOSSLCertificate.fromPEMBytes(pem)[0].toDERBytes() } }

    /// A server that shows this certificate.
    var server: TLSConfiguration {
      get throws {
        .makeServerConfiguration(
          certificateChain: try NIOSSLCertificate.fromPEMFile(path).map { .certificate($0) },
          privateKey: .privateKey(try NIOSSLPrivateKey(file: keyPath, format: .pem)))
      }
    }
  }

  struct Failure: Error {
    let arguments: [String]
    let output: String
  }

  let folder = try! TemporaryFolder()

  /// - Parameters:
  ///   - names: the subject's alternative names, such as `IP:127.0.0.1`; none for an authority.
  ///   - issuer: who signs it; itself when absent.
  ///   - from, to: years that it holds.
  func make(
    _ name: String, names: String?, issuer: Certificate? = nil, from: Int = 2020, to: Int = 2049
  ) throws -> Certificate {
    let certificate = Certificate(path: folder("\(name).pem"), keyPath: folder("\(name).key"))
    let request = folder("\(name).csr")
    try run([
      "req", "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout",
      certificate.keyPath, "-out", request, "-subj", "/CN=\(name)",
    ])
    // `openssl ca` is the one command that sets both dates in every version.
    let extensions =
      names.map { "basicConstraints=CA:FALSE\nsubjectAltName=\($0)" } ?? "basicConstraints=critical,CA:TRUE"
    let configuration = folder("\(name).conf")
    try write("", to: folder("\(name).index"))
    try write(
      """
      [ca]
      default_ca=this
      [this]
      database=\(folder("\(name).index"))
      new_certs_dir=\(folder.path)
      rand_serial=yes
      default_md=sha256
      policy=any
      x509_extensions=extensions
      [any]
      commonName=supplied
      [extensions]
      \(extensions)
      """, to: configuration)
    let signer =
      issuer.map { ["-cert", $0.path, "-keyfile", $0.keyPath] } ?? ["-selfsign", "-keyfile", certificate.keyPath]
    try run(
      ["ca", "-batch", "-notext", "-config", configuration, "-in", request, "-out", certificate.path] + signer + [
        "-startdate", "\(from)0101000000Z", "-enddate", "\(to)0101000000Z",
      ])
    return certificate
  }

  private func write(_ text: String, to path: String) throws {
    try Data(text.utf8).write(to: URL(fileURLWithPath: path))
  }

  private func run(_ arguments: [String]) throws {
    let process = Process()
    process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
    process.arguments = ["openssl"] + arguments
    let output = Pipe()
    process.standardError = output
    process.standardOutput = output
    try process.run()
    let text = String(decoding: try output.fileHandleForReading.readToEnd() ?? Data(), as: UTF8.self)
    process.waitUntilExit()
    guard process.terminationStatus == 0 else { throw Failure(arguments: arguments, output: text) }
  }
}
