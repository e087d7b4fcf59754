import Foundation
import Glibc
import Testing

/// A desk at which an agent holds the vault. It ends with the desk.
extension Desk {
  /// The agent's own word, nil where there is none.
  func agentStatus(_ arguments: String...) throws -> [String: Any]? {
    let outcome = try run("coffer", ["agent", "status", "--json"] + arguments)
    try #require(outcome.code == 0, "\(outcome.errors)")
    let status = try #require(try JSONSerialization.jsonObject(with: Data(outcome.bytes)) as? [String: Any])
    return status["running"] as? Bool == true ? status : nil
  }

  func agentProcess() throws -> pid_t { pid_t(try #require(try agentStatus()?["process"] as? Int)) }

  var agentState: String? { get throws { try agentStatus()?["state"] as? String } }

  @discardableResult
  func unlock(_ arguments: String..., sourceLocation: SourceLocation = #_sourceLocation) throws
    -> RunningProgram.Outcome
  {
    let outcome = try run("coffer", ["unlock", "--passcode-file", "passcode"] + arguments)
    #expect(outcome.code == 0, "\(outcome.errors)", sourceLocation: sourceLocation)
    return outcome
  }

  /// Runs `coffer` as it is told, without a passcode; it must do it.
  @discardableResult
  func served(
    _ arguments: String..., input: [UInt8] = [], sourceLocation: SourceLocation = #_sourceLocation
  ) throws -> RunningProgram.Outcome {
    let outcome = try run("coffer", arguments, input: input)
    #expect(outcome.code == 0, "\(arguments): \(outcome.errors)", sourceLocation: sourceLocation)
    return outcome
  }

  /// As `served`, and it must be refused with a reason.
  func unserved(
    _ code: Int32, _ says: String, _ arguments: String..., input: [UInt8] = [],
    sourceLocation: SourceLocation = #_sourceLocation
  ) throws {
    expect(try run("coffer", arguments, input: input), code: code, says: [says], sourceLocation: sourceLocation)
  }

  /// Waits until the agent runs no command.
  func waitForIdleAgent() throws {
    while let commands = try agentStatus()?["commands"] as? Int, commands > 0 { sched_yield() }
  }

  /// The agent's socket.
  var socketPath: String {
    get throws {
      let names = try FileManager.default.contentsOfDirectory(atPath: path("run/coffer"))
      return path("run/coffer/" + (try #require(names.first { $0.hasSuffix(".sock") })))
    }
  }
}

/// A client that keeps to nothing.
final class RawClient {
  private let socket: Descriptor

  init(_ path: String) throws {
    socket = try Descriptor(Glibc.socket(AF_UNIX, CInt(SOCK_STREAM.rawValue), 0), "socket")
    var address = sockaddr_un()
    address.sun_family = sa_family_t(AF_UNIX)
    withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8.prefix($0.count - 1)) }
    let result = withUnsafePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        connect(socket.number, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
      }
    }
    guard result == 0 else { throw POSIXError(POSIXErrorCode(rawValue: errno) ?? .EIO) }
  }

  var number: CInt { socket.number }

  func send(_ bytes: [UInt8]) -> Bool { socket.write(bytes) }

  /// All that the agent says until it closes.
  func answer() -> [UInt8] { socket.read(until: nil) }
}
