import Foundation
import FoundationNetworking
import Testing

/// `coffer-server run` on a port of the system's choice, with the company Acme and its owner's token.
final class RunningServer {
  struct Answer {
    let status: Int
    let body: Data

    var object: [String: Any] { (try? JSONSerialization.jsonObject(with: body)) as? [String: Any] ?? [:] }
  }

  let url: String
  let token: String
  private let desk: Desk
  private let data: String
  private let program: RunningProgram

  /// - Parameter options: further options of `run`.
  init(at desk: Desk, data: String = "server", listen: String = "127.0.0.1:0", options: [String] = []) throws {
    self.desk = desk
    self.data = data
    _ = try Self.administer(desk, data, ["tenant", "create", "Acme"])
    token = try Self.administer(desk, data, ["token", "create", "--tenant", "Acme", "--role", "owner"])
    program = try desk.start("coffer-server", ["run", "--data", data, "--listen", listen] + options)
    let line = program.line()
    url = try #require(line.split(whereSeparator: \.isWhitespace).last.map(String.init), "the server did not start")
    try #require(line == "listening on \(url)\n")
  }

  /// The same server again, from the same data, after it was stopped.
  init(at desk: Desk, token: String, data: String = "server", listen: String, options: [String] = []) throws {
    self.desk = desk
    self.data = data
    self.token = token
    program = try desk.start("coffer-server", ["run", "--data", data, "--listen", listen] + options)
    let line = program.line()
    url = try #require(line.split(whereSeparator: \.isWhitespace).last.map(String.init), "the server did not start")
  }

  /// Runs a command of the administration and returns what it printed.
  func administer(_ arguments: String...) throws -> String { try Self.administer(desk, data, arguments) }

  private static func administer(_ desk: Desk, _ data: String, _ arguments: [String]) throws -> String {
    let outcome = try desk.run("coffer-server", arguments + ["--data", data])
    try #require(outcome.code == 0, "\(arguments): \(outcome.errors)")
    return outcome.value
  }

  func enrollmentCode(tenant: String = "Acme") throws -> String {
    try administer("enrollment", "create", "--tenant", tenant)
  }

  /// Sends a request as the owner; `token` is another bearer, and the empty one sends none.
  func request(
    _ method: String, _ path: String, json: [String: Any]? = nil, token: String? = nil, headers: [String: String] = [:]
  ) async throws -> Answer {
    var request = URLRequest(url: try #require(URL(string: url + path)))
    request.httpMethod = method
    let bearer = token ?? self.token
    if !bearer.isEmpty { request.setValue("Bearer \(bearer)", forHTTPHeaderField: "Authorization") }
    if let json {
      request.setValue("application/json", forHTTPHeaderField: "Content-Type")
      request.httpBody = try JSONSerialization.data(withJSONObject: json)
    }
    for (name, value) in headers { request.setValue(value, forHTTPHeaderField: name) }
    let (body, response) = try await URLSession.shared.data(for: request)
    return Answer(status: try #require(response as? HTTPURLResponse).statusCode, body: body)
  }

  /// The version of what is at `path`, for a change of it.
  func tag(_ path: String) async throws -> String {
    var request = URLRequest(url: try #require(URL(string: url + path)))
    request.setValue("Bearer \(token)", forHTTPHeaderField: "Authorization")
    let (_, response) = try await URLSession.shared.data(for: request)
    return try #require((response as? HTTPURLResponse)?.value(forHTTPHeaderField: "ETag"))
  }

  /// Approves an app for Open-In, and returns the item's id.
  func approve(_ bundleId: String, teamId: String, teamKey: String, extensions: [String]) async throws -> String {
    let answer = try await request(
      "POST", "/items",
      json: [
        "name": "Acme Editor", "bundleId": bundleId, "teamId": teamId, "teamKey": teamKey, "extensions": extensions,
        "actions": ["openIn"],
      ])
    try #require(answer.status == 201)
    return try #require(answer.object["id"] as? String)
  }

  func allowOwner(_ actions: [String]) async throws {
    let answer = try await request(
      "PUT", "/v1/settings", json: ["ownerActions": actions, "allowFilteredTier": false])
    #expect(answer.status == 200)
  }

  /// Ends the server as a service manager does.
  func stop() -> RunningProgram.Outcome {
    program.signal(SIGTERM)
    return program.wait()
  }
}
