import CofferAPI
import CofferCrypto
import CofferPolicy
import CofferServerSQLite
import CofferSystem
import CofferTestSupport
import Foundation
import FoundationNetworking
import HTTPTypes
import Testing

@testable import CofferServer

/// What operators do, with the real program where it matters.
@Suite struct OperationTests {
  let folder: TemporaryFolder
  let command: ServerCommand

  init() throws {
    folder = try TemporaryFolder()
    command = ServerCommand(folder: folder)
  }

  func send(
    _ method: String, _ url: String, token: String, json: String? = nil
  ) async throws -> (status: Int, body: Data) {
    var request = URLRequest(url: try #require(URL(string: url)))
    request.httpMethod = method
    request.setValue("Bearer \(token)", forHTTPHeaderField: "Authorization")
    if let json {
      request.setValue("application/json", forHTTPHeaderField: "Content-Type")
      request.httpBody = Data(json.utf8)
    }
    let (body, response) = try await URLSession.shared.data(for: request)
    return (try #require(response as? HTTPURLResponse).statusCode, body)
  }

  @Test func `metrics are the operator's, and name no company, device or client's text`() async throws {
    let harness = try Harness()
    let company = try await harness.company()
    _ = try await company.add()
    _ = try await harness.send(.get, "/v1/nothing/secret-path", token: company.owner)
    _ = try await harness.send(.post, "/v1/session", json: SessionTests.body("nobody@example.com"))
    for token in [nil, company.owner, "a secret for the operato", "a secret for the operatorx"] {
      #expect(try await harness.send(.get, "/metrics", token: token).status == 401)
    }
    let reply = try await harness.send(.get, "/metrics", token: "a secret for the operator")
    #expect(reply.status == 200)
    let text = String(decoding: reply.body, as: UTF8.self)
    #expect(text.contains(#"coffer_requests_total{method="POST",route="/items",status="201"} 1"#))
    #expect(text.contains("coffer_sign_ins_refused_total 1"))
    #expect(text.contains("coffer_event_streams 0"))
    for secret in ["secret-path", company.tenant.id, "nobody@example.com"] { #expect(!text.contains(secret)) }
    let none = PolicyServer(
      store: harness.store, serverKey: harness.directory.serverKey, passwordCost: 14, log: Harness.silent)
    #expect(none.metricsKey == nil)
  }

  @Test func `too little memory for a password is no failure of the store, and what does not open is one`() {
    let metrics = Metrics()
    let middleware = ProblemMiddleware(log: Harness.silent, metrics: metrics)
    let shortage = middleware.problem(for: CryptoError.noMemory(byteCount: 1 << 27))
    #expect(shortage.name == .unavailable && shortage.headers[.retryAfter] == "5")
    #expect(shortage.detail.contains("memory") && metrics.text(gauges: []).contains("coffer_store_failures_total 0"))
    let damage = middleware.problem(for: CryptoError.notAuthentic)
    #expect(damage.detail.contains("store") && metrics.text(gauges: []).contains("coffer_store_failures_total 1"))
  }

  @Test func `a backup is made while the server runs, and what it holds is served again`() async throws {
    #expect(try command("tenant", "create", "Acme", "--data", command.data).code == 0)
    let token = try command("token", "create", "--tenant", "Acme", "--role", "owner", "--data", command.data).value
    let backup = folder("backup.sqlite")
    let served = try await command.serving { url in
      let first = try await send("POST", url + "/items", token: token, json: Company.item("a"))
      #expect(first.status == 201)
      #expect(try command("backup", backup, "--data", command.data).code == 0)
      let second = try await send("POST", url + "/items", token: token, json: Company.item("b"))
      #expect(second.status == 201)
      #expect(try command("backup", backup, "--data", command.data).code == 73)
    }
    #expect(served.code == 0)
    #expect(try StoreTests.permissions(backup) == 0o600)
    let key = command.data + "/server.key"
    let restored = ServerCommand(folder: try TemporaryFolder())
    #expect(try command("restore", backup, "--server-key", key, "--data", command.data).code == 73)
    try Data(repeating: 1, count: 32).write(to: URL(fileURLWithPath: folder("other.key")))
    let foreign = try command("restore", backup, "--server-key", folder("other.key"), "--data", folder("foreign"))
    #expect(foreign.code == 65)
    // The same place may be tried again with the right one.
    #expect(try command("restore", backup, "--server-key", key, "--data", folder("foreign")).code == 0)
    #expect(try command("restore", backup, "--server-key", key, "--data", restored.data).code == 0)
    _ = try await restored.serving { url in
      let items = try await send("GET", url + "/items", token: token)
      #expect(try JSONDecoder().decode([Item].self, from: items.body).map(\.bundleId) == ["a"])
    }
  }

  @Test func `an audit verifies offline, and the first entry that was altered is named`() async throws {
    let tenant = try command("tenant", "create", "Acme", "--data", command.data, "--json")
    struct Made: Decodable { let rootFingerprint: String }
    let fingerprint = try JSONDecoder().decode(Made.self, from: Data(tenant.output.utf8)).rootFingerprint
    let token = try command("token", "create", "--tenant", "Acme", "--role", "owner", "--data", command.data).value
    let file = folder("audit.jsonl")
    _ = try await command.serving { url in
      for index in 0..<3 {
        #expect(try await send("POST", url + "/items", token: token, json: Company.item("a\(index)")).status == 201)
      }
      let export = try await send("GET", url + "/v1/audit/export", token: token)
      #expect(export.status == 200)
      try export.body.write(to: URL(fileURLWithPath: file))
    }
    let good = try command("audit", "verify", file, "--root-fingerprint", fingerprint)
    #expect(good.code == 0 && good.value == "10", "\(good.error)")
    let text = try String(contentsOfFile: file, encoding: .utf8)
    #expect(try command("audit", "verify", "-", input: text).value == "10")
    let wrong = try command("audit", "verify", file, "--root-fingerprint", String(repeating: "0", count: 64))
    #expect(wrong.code == 65)
    let altered = text.replacing(#""bundleId":"a0""#, with: #""bundleId":"b0""#)
    let found = try command("audit", "verify", "-", input: altered)
    #expect(found.code == 65 && found.error.contains("entry 4 was altered"), "\(found.error)")
    #expect(try command("audit", "verify", folder("none")).code == 66)
  }

  @Test func `the first start prints a link, and no start after somebody administers the server`() async throws {
    func start() async throws -> String {
      let process = command.process(["run", "--data", command.data, "--listen", "127.0.0.1:0"])
      let stdout = Pipe()
      try process.run(output: stdout)
      // The end of the output comes with the end of the program; both lines are there before the first answer.
      var output = Data()
      while !output.contains(10) { output += stdout.fileHandleForReading.availableData }
      process.terminate()
      output += stdout.fileHandleForReading.readDataToEndOfFile()
      process.waitUntilExit()
      return String(decoding: output, as: UTF8.self)
    }
    let lines = try await start().split(separator: "\n")
    #expect(lines.count == 2 && lines[1].hasPrefix("set up at http://127.0.0.1:"))
    #expect(lines[1].contains("/setup#coffer_invitation_"))
    #expect(try command("tenant", "create", "Acme", "--data", command.data).code == 0)
    let admin = try command(
      "admin", "create", "--data", command.data, "--tenant", "Acme", "--email", "a@example.com", "--password-file",
      "-", input: "correct horse battery")
    #expect(admin.code == 0)
    #expect(try await start().split(separator: "\n").count == 1)
  }

  @Test func `an open stream ends well and at once when the server stops`() async throws {
    #expect(try command("tenant", "create", "Acme", "--data", command.data).code == 0)
    let code = try #require(
      EnrollmentCode(try command("enrollment", "create", "--tenant", "Acme", "--data", command.data).value))
    let key = SigningKey()
    let process = command.process(["run", "--data", command.data, "--listen", "127.0.0.1:0"])
    let (stdout, stderr) = (Pipe(), Pipe())
    try process.run(output: stdout, errors: stderr)
    var output = Data()
    while !output.contains(10) { output += stdout.fileHandleForReading.availableData }
    let url = String(decoding: output.prefix { $0 != 10 }, as: UTF8.self).split(separator: " ").last ?? ""
    let stream: RawConnection
    do {
      let enrolled = try await send(
        "POST", url + "/v1/enroll", token: "x", json: Company.enrollment(code.secret, key: key))
      let answer = try JSONDecoder().decode(EnrollResponse.self, from: enrolled.body)
      let now = SystemTime().now().seconds
      let assertion = try DeviceAssertion(
        device: answer.deviceId, tenant: answer.tenant, now: now, id: UUID().uuidString
      ).signed(with: key)
      var request = URLRequest(url: try #require(URL(string: url + "/v1/device/token")))
      request.httpMethod = "POST"
      request.setValue("application/x-www-form-urlencoded", forHTTPHeaderField: "Content-Type")
      request.httpBody = Data(EnrolledDevice.form(assertion).utf8)
      let (body, _) = try await URLSession.shared.data(for: request)
      let token = try JSONDecoder().decode(TokenResponse.self, from: body).accessToken
      stream = try RawConnection(port: try #require(url.split(separator: ":").last.flatMap { UInt16($0) }))
      try stream.send(
        "GET /v1/device/events HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer \(token)\r\n\r\n")
      #expect(try stream.read(until: "event: change").hasPrefix("HTTP/1.1 200"))
    } catch {
      process.terminate()
      throw error
    }
    process.terminate()
    // The last chunk, and not a connection that was cut.
    #expect(try stream.readToEnd().hasSuffix("0\r\n\r\n"))
    process.waitUntilExit()
    #expect(process.terminationStatus == 0)
  }
}
