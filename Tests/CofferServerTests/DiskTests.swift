import CofferAPI
import CofferCrypto
import CofferServerSQLite
import CofferSystem
import CofferTestSupport
import Foundation
import FoundationNetworking
import GRDB
import HTTPTypes
import Hummingbird
import Testing

@testable import CofferServer

/// A database that others hold, and a disk that is full: refused, never half done, and well again afterwards.
@Suite struct DiskTests {
  @Test func `while another process holds the database, a change is told to come again`() async throws {
    let harness = try Harness()
    let company = try await harness.company()
    let server = PolicyServer(
      store: try SQLitePolicyStore(harness.directory, busyTimeout: 0.05), serverKey: harness.directory.serverKey,
      passwordCost: 14, time: harness.time, log: Harness.silent)
    var configuration = Configuration()
    configuration.allowsUnsafeTransactions = true
    let other = try DatabaseQueue(path: harness.directory.database, configuration: configuration)
    let before = try await harness.current(company.tenant).digest
    try await other.writeWithoutTransaction { try $0.execute(sql: "BEGIN IMMEDIATE") }
    let responder = server.router.buildResponder()
    func send(_ method: HTTPRequest.Method, _ json: String? = nil) async throws -> Reply {
      try await harness.send(method, "/items", token: company.owner, json: json, through: responder)
    }
    let held = try await send(.post, Company.item())
    #expect(held.status == 503)
    #expect(held.problem == "unavailable" && held.headers[.retryAfter] != nil)
    // Reading goes on.
    let read = try await send(.get)
    #expect(read.status == 200 && read.body == Array("[]".utf8))
    try await other.writeWithoutTransaction { try $0.execute(sql: "ROLLBACK") }
    #expect(try await harness.current(company.tenant).digest == before)
    let again = try await send(.post, Company.item())
    #expect(again.status == 201)
  }

  @Test func `on a full disk changes are refused whole, and what was answered stays`() async throws {
    let command = ServerCommand(folder: try TemporaryFolder())
    _ = try command("tenant", "create", "Acme", "--data", command.data)
    let token = try command("token", "create", "--tenant", "Acme", "--role", "owner", "--data", command.data).value
    // No file may grow beyond this, as if the disk ended there.
    let server = command.process(["run", "--data", command.data, "--listen", "127.0.0.1:0"])
    let process = ServerProcess(
      "/bin/sh",
      ["-c", #"trap '' XFSZ; ulimit -f 1500; exec "$0" "$@""#, server.executable] + server.arguments,
      environment: server.environment)
    let stdout = Pipe()
    try process.run(output: stdout)
    var output = Data()
    while !output.contains(10) { output += stdout.fileHandleForReading.availableData }
    let url = "\(String(decoding: output.prefix { $0 != 10 }, as: UTF8.self).split(separator: " ").last ?? "")/items"
    var made: [String] = []
    var refused = 0
    for index in 0..<1000 where refused < 3 {
      let answer = try await Self.send("POST", url, token: token, json: Company.item("app\(index)"))
      #expect([201, 503].contains(answer.status))
      if answer.status == 201 { made.append("app\(index)") } else { refused += 1 }
    }
    #expect(refused == 3 && !made.isEmpty)
    let listed = try await Self.send("GET", url, token: token)
    #expect(try JSONDecoder().decode([Item].self, from: listed.body).map(\.bundleId) == made)
    process.terminate()
    process.waitUntilExit()
    // With room again, everything is as it was, and goes on.
    _ = try await command.serving { url in
      let listed = try await Self.send("GET", url + "/items", token: token)
      #expect(try JSONDecoder().decode([Item].self, from: listed.body).map(\.bundleId) == made)
      let more = try await Self.send("POST", url + "/items", token: token, json: Company.item("more"))
      #expect(more.status == 201)
      let export = try await Self.send("GET", url + "/v1/audit/export", token: token)
      let lines = export.body.split(separator: 10).map(Array.init)
      #expect(throws: Never.self) { try AuditTests.verify(lines) }
    }
  }

  static func send(
    _ method: String, _ url: String, token: String?, json: String? = nil, over session: URLSession = .shared
  ) async throws -> (status: Int, body: Data, retryAfter: String?) {
    var request = URLRequest(url: try #require(URL(string: url)))
    request.httpMethod = method
    if let token { request.setValue("Bearer \(token)", forHTTPHeaderField: "Authorization") }
    request.setValue("application/json", forHTTPHeaderField: "Content-Type")
    request.httpBody = json.map { Data($0.utf8) }
    let (body, response) = try await session.data(for: request)
    let answer = try #require(response as? HTTPURLResponse)
    return (answer.statusCode, body, answer.value(forHTTPHeaderField: "Retry-After"))
  }
}
