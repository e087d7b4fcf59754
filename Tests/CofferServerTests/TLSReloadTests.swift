import CofferTestSupport
import Foundation
import Glibc
import Testing

@testable import CofferServer

/// The real program, whose TLS files change while it runs.
@Suite(.serialized) struct TLSReloadTests {
  @Test func `a new certificate is taken on SIGHUP, a bad one is not, and connections live on`() throws {
    let command = ServerCommand(folder: try TemporaryFolder())
    let (certificate, key) = (command.folder("chain.pem"), command.folder("key.pem"))
    try Self.write(TLSFixture.certificate, to: certificate)
    try Self.write(TLSFixture.key, to: key)
    let other = try Self.makePair(in: command.folder("other"))
    let server = try Running(command, ["--tls-certificate", certificate, "--tls-key", key])
    defer { server.end() }
    let first = try server.fingerprint()
    let connection = try Connection(port: server.port)
    #expect(try connection.ask().hasPrefix("HTTP/1.1 200"))

    // The key alone does not belong to the certificate: the pair stays, and the server goes on.
    try Self.write(other.key, to: key)
    server.signal(SIGHUP)
    try server.awaitLog("cannot be used")
    #expect(try server.fingerprint() == first)

    try Self.write(other.certificate, to: certificate)
    server.signal(SIGHUP)
    try server.awaitLog("was read anew")
    let second = try server.fingerprint()
    #expect(second != first)
    #expect(try connection.ask().hasPrefix("HTTP/1.1 200"))

    for nonsense in ["", "nonsense", other.key] {
      try Self.write(nonsense, to: certificate)
      server.signal(SIGHUP)
      try server.awaitLog("cannot be used")
      #expect(try server.fingerprint() == second)
    }

    // Also without being told, by a rename as programs for certificates do it.
    try Self.write(TLSFixture.key, to: key)
    try Self.write(TLSFixture.certificate, to: certificate + ".new")
    #expect(rename(certificate + ".new", certificate) == 0)
    try server.awaitLog("was read anew")
    #expect(try server.fingerprint() == first)
    #expect(try connection.ask().hasPrefix("HTTP/1.1 200"))
  }

  @Test func `SIGHUP ends no server without TLS`() throws {
    let server = try Running(ServerCommand(folder: try TemporaryFolder()), [])
    defer { server.end() }
    server.signal(SIGHUP)
    try server.awaitLog("there are no TLS files")
    #expect(server.isRunning)
  }

  private static func write(_ text: String, to path: String) throws {
    try Data(text.utf8).write(to: URL(fileURLWithPath: path))
  }

  private static func makePair(in folder: String) throws -> (certificate: String, key: String) {
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
    _ = try run(
      """
      openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=localhost \
        -keyout \(folder)/key.pem -out \(folder)/chain.pem
      """)
    return (
      try String(contentsOfFile: "\(folder)/chain.pem", encoding: .utf8),
      try String(contentsOfFile: "\(folder)/key.pem", encoding: .utf8)
    )
  }

  private static func run(_ script: String) throws -> String {
    let process = ServerProcess("/bin/sh", ["-c", script], environment: ["PATH": "/usr/bin:/bin"])
    let output = Pipe()
    try process.run(output: output)
    let text = output.fileHandleForReading.readDataToEndOfFile()
    process.waitUntilExit()
    return String(decoding: text, as: UTF8.self)
  }

  /// A server that runs.
  private final class Running {
    private let process: ServerProcess
    private let log = Pipe()
    private var text = ""
    let port: String

    init(_ command: ServerCommand, _ options: [String]) throws {
      process = command.process(["run", "--data", command.data, "--listen", "127.0.0.1:0"] + options)
      let stdout = Pipe()
      try process.run(output: stdout, errors: log)
      var output = Data()
      while !output.contains(10) {
        let more = stdout.fileHandleForReading.availableData
        if more.isEmpty { break }
        output += more
      }
      let line = String(decoding: output.prefix { $0 != 10 }, as: UTF8.self)
      port = String(try #require(line.split(separator: ":").last))
    }

    var isRunning: Bool { process.isRunning }
    func signal(_ number: Int32) { kill(process.processIdentifier, number) }

    /// Waits for a line of the log that has `part`, and takes everything up to it.
    func awaitLog(_ part: String) throws {
      while !text.contains(part) {
        let more = log.fileHandleForReading.availableData
        try #require(!more.isEmpty, "the server ended: \(text)")
        text += String(decoding: more, as: UTF8.self)
      }
      text = String(text[try #require(text.range(of: part)).upperBound...])
    }

    /// Of the certificate that a new connection is shown.
    func fingerprint() throws -> String {
      let text = try TLSReloadTests.run(
        "openssl s_client -connect 127.0.0.1:\(port) </dev/null 2>/dev/null | openssl x509 -noout -fingerprint -sha256")
      try #require(text.contains("="))
      return text
    }

    func end() {
      process.terminate()
      process.waitUntilExit()
    }
  }

  /// A connection that stays.
  private final class Connection {
    private let process: ServerProcess
    private let (input, output) = (Pipe(), Pipe())

    init(port: String) throws {
      process = ServerProcess("/usr/bin/openssl", ["s_client", "-quiet", "-connect", "127.0.0.1:\(port)"])
      try process.run(input: input, output: output)
    }

    deinit { process.terminate() }

    func ask() throws -> String {
      input.fileHandleForWriting.write(Data("GET /health HTTP/1.1\r\nHost: x\r\n\r\n".utf8))
      var text = ""
      while !text.contains(#"{"status":"ok"}"#) {
        let more = output.fileHandleForReading.availableData
        try #require(!more.isEmpty, "the connection ended")
        text += String(decoding: more, as: UTF8.self)
      }
      return text
    }
  }
}
