import CofferAPI
import CofferServerSQLite
import CofferSystem
import CofferTestSupport
import Foundation
import HTTPTypes
import Testing

@testable import CofferServer

/// A database file that is not what it was: told at the start, and no open door while the server runs.
@Suite struct DamageTests {
  /// Overwrites all pages of the file but the first, which every connection reads when it is opened.
  private static func damage(_ path: String) throws {
    let file = try FileHandle(forUpdating: URL(fileURLWithPath: path))
    let size = Int(try file.seekToEnd())
    try file.seek(toOffset: 4096)
    try file.write(contentsOf: Data(repeating: 0xA5, count: size - 4096))
    try file.close()
  }

  @Test(arguments: [true, false])
  func `a damaged database is refused at the start, with what to do about it`(isWhole: Bool) async throws {
    let command = ServerCommand(folder: try TemporaryFolder())
    _ = try command("tenant", "create", "Acme", "--data", command.data)
    let path = command.data + "/coffer.sqlite"
    if isWhole {
      try Data(repeating: 7, count: 40_960).write(to: URL(fileURLWithPath: path))
    } else {
      // Somewhere in the middle, which no start needs to read.
      let file = try FileHandle(forUpdating: URL(fileURLWithPath: path))
      let size = try file.seekToEnd()
      try file.seek(toOffset: size - 4096)
      try file.write(contentsOf: Data(repeating: 0xA5, count: 4096))
      try file.close()
    }
    // One that starts all the same is ended.
    let started = try await command.serving { _ in }
    #expect(started.code == 65)
    #expect(started.output.isEmpty)
    #expect(started.error.contains("coffer-server restore"), "\(started.error)")
  }

  @Test func `damage that is found while the server runs opens nothing, and is told to whoever asks`() async throws {
    let command = ServerCommand(folder: try TemporaryFolder())
    _ = try command("tenant", "create", "Acme", "--data", command.data)
    let token = try command("token", "create", "--tenant", "Acme", "--role", "owner", "--data", command.data).value
    let served = try await command.serving { url in
      func status(_ path: String, token: String? = nil, json: String? = nil) async throws -> (Int, String?) {
        let answer = try await DiskTests.send(
          json == nil ? "GET" : "POST", url + path, token: token ?? "coffer_api_\(UUID().uuidString)", json: json)
        return (answer.status, answer.retryAfter)
      }
      #expect(try await status("/ready").0 == 200)
      try Self.damage(command.data + "/coffer.sqlite")
      for (path, json) in [
        ("/v1/apps", nil), ("/items", Company.item()), ("/v1/audit", nil), ("/v1/policy", nil),
      ] as [(String, String?)] {
        for token in [token, nil] {
          let (code, retryAfter) = try await status(path, token: token, json: json)
          #expect(code == 503 || (code == 401 && token == nil), "\(path) \(code)")
          if code == 503 { #expect(retryAfter != nil) }
        }
      }
      #expect(try await status("/ready").0 == 503)
      #expect(try await status("/health").0 == 503)
    }
    #expect(served.code == 0)
    #expect(served.error.contains("coffer.sqlite is damaged"), "\(served.error)")
  }
}
