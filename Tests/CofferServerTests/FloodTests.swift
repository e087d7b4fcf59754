import CofferAPI
import CofferSystem
import CofferTestSupport
import Foundation
import FoundationNetworking
import Testing

@testable import CofferServer

/// The real program, and many who try to sign in at once.
@Suite struct FloodTests {
  @Test func `a flood of sign-ins takes bounded memory, lets nobody in, and keeps nobody else from working`()
    async throws
  {
    let folder = try TemporaryFolder()
    let command = ServerCommand(folder: folder)
    _ = try command("tenant", "create", "Acme", "--data", command.data)
    let password = folder("password")
    try Data("correct horse battery\n".utf8).write(to: URL(fileURLWithPath: password))
    for email in ["kim@example.com", "ada@example.com"] {
      let made = try command(
        "admin", "create", "--tenant", "Acme", "--email", email, "--password-file", password, "--data", command.data)
      #expect(made.code == 0, "\(made.error)")
    }
    let token = try command("token", "create", "--tenant", "Acme", "--role", "owner", "--data", command.data).value
    let process = command.process(["run", "--data", command.data, "--listen", "127.0.0.1:0"])
    let stdout = Pipe()
    try process.run(output: stdout)
    var output = Data()
    while !output.contains(10) { output += stdout.fileHandleForReading.availableData }
    let line = String(decoding: output.prefix { $0 != 10 }, as: UTF8.self)
    let url = String(line.split(separator: " ").last ?? "")
    let before = Self.peak(process.processIdentifier)
    let configuration = URLSessionConfiguration.ephemeral
    configuration.httpMaximumConnectionsPerHost = 200
    let many = URLSession(configuration: configuration)
    // One account that is there, some that are not: more than may wait.
    let statuses = try await withThrowingTaskGroup(of: Int?.self) { group in
      for index in 0..<160 {
        let email = index.isMultiple(of: 2) ? "kim@example.com" : "nobody\(index)@example.com"
        group.addTask {
          try await DiskTests.send(
            "POST", url + "/v1/session", token: nil, json: SessionTests.body(email, "wrong horse battery"), over: many
          ).status
        }
      }
      // While they come, others work, and are asked how they are.
      for index in 0..<20 {
        group.addTask {
          let made = try await DiskTests.send("POST", url + "/items", token: token, json: Company.item("app\(index)"))
          #expect(made.status == 201)
          let health = try await DiskTests.send("GET", url + "/health", token: nil)
          #expect(health.status == 200)
          return nil
        }
      }
      return try await group.reduce(into: [Int]()) { found, status in if let status { found.append(status) } }
    }
    #expect(statuses.count == 160 && Set(statuses).isSubset(of: [401, 429, 503]), "\(Set(statuses))")
    #expect(statuses.contains(429) && statuses.contains(503))
    // One derivation of 128 MiB at a time, and not two.
    let grown = Self.peak(process.processIdentifier) - before
    #expect(grown < 250 << 10, "\(grown) KiB")
    // Somebody else signs in all the same.
    let body = SessionTests.body("ada@example.com")
    #expect(try await DiskTests.send("POST", url + "/v1/session", token: nil, json: body).status == 201)
    process.terminate()
    #expect(process.waitUntilExit() == .exited(0))
  }

  /// The most memory that a process has had, in KiB.
  private static func peak(_ process: Int32) -> Int {
    let status = (try? KernelFile.text(of: "/proc/\(process)/status")) ?? ""
    let line = status.split(separator: "\n").first { $0.hasPrefix("VmHWM:") } ?? ""
    return line.split(whereSeparator: { !$0.isNumber }).first.flatMap { Int($0) } ?? 0
  }
}
