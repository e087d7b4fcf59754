import CofferTestSupport
import Foundation
import Glibc

/// The built `coffer-server`, run as a person would.
struct ServerCommand: Sendable {
  struct Result: Sendable {
    let code: Int32
    let output: String
    let error: String

    /// The one line that was printed.
    var value: String { output.trimmingCharacters(in: .newlines) }
  }

  /// Where SwiftPM puts products: beside the test bundle.
  static let path = Bundle.main.executableURL!.deletingLastPathComponent().appendingPathComponent("coffer-server").path

  let folder: TemporaryFolder

  var data: String { folder("data") }

  func process(_ arguments: [String]) -> ServerProcess {
    ServerProcess(Self.path, arguments, environment: ["XDG_DATA_HOME": folder("xdg")])
  }

  /// Runs a command to its end.
  func callAsFunction(_ arguments: String..., input: String = "") throws -> Result {
    try run(arguments, input: input)
  }

  func run(_ arguments: [String], input: String = "") throws -> Result {
    let process = process(arguments)
    let (stdin, stdout, stderr) = (Pipe(), Pipe(), Pipe())
    try process.run(input: stdin, output: stdout, errors: stderr)
    stdin.fileHandleForWriting.write(Data(input.utf8))
    try stdin.fileHandleForWriting.close()
    // Both are small enough for a pipe, so that neither read can keep the program waiting.
    let output = stdout.fileHandleForReading.readDataToEndOfFile()
    let error = stderr.fileHandleForReading.readDataToEndOfFile()
    process.waitUntilExit()
    return Result(
      code: process.terminationStatus, output: String(decoding: output, as: UTF8.self),
      error: String(decoding: error, as: UTF8.self))
  }

  /// Runs `coffer-server run` while `body` uses it; returns its exit code and log.
  func serving(signal: Int32 = SIGTERM, _ body: (_ url: String) async throws -> Void) async throws -> Result {
    let process = process(["run", "--data", data, "--listen", "127.0.0.1:0"])
    let (stdout, stderr) = (Pipe(), Pipe())
    try process.run(output: stdout, errors: stderr)
    var output = Data()
    while !output.contains(10) {
      let more = stdout.fileHandleForReading.availableData
      if more.isEmpty { break }
      output += more
    }
    // Behind the first line there may be a link to set the server up.
    let line = String(decoding: output.prefix { $0 != 10 }, as: UTF8.self)
    do {
      try await body(String(line.trimmingCharacters(in: .newlines).split(separator: " ").last ?? ""))
    } catch {
      process.terminate()
      throw error
    }
    kill(process.processIdentifier, signal)
    let error = stderr.fileHandleForReading.readDataToEndOfFile()
    process.waitUntilExit()
    return Result(
      code: process.terminationStatus, output: line, error: String(decoding: error, as: UTF8.self))
  }
}
