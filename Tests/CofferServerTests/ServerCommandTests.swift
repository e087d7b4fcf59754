import CofferAPI
import CofferTestSupport
import Foundation
import FoundationNetworking
import Testing

/// `coffer-server` as a person and a script meet it.
@Suite struct ServerCommandTests {
  let folder: TemporaryFolder
  let command: ServerCommand

  init() throws {
    folder = try TemporaryFolder()
    command = ServerCommand(folder: folder)
  }

  func json(_ text: String) throws -> [String: Any] {
    try #require(try JSONSerialization.jsonObject(with: Data(text.utf8)) as? [String: Any])
  }

  func status(_ url: String, token: String? = nil) async throws -> Int {
    var request = URLRequest(url: try #require(URL(string: url)))
    if let token { request.setValue("Bearer \(token)", forHTTPHeaderField: "Authorization") }
    return try #require(try await URLSession.shared.data(for: request).1 as? HTTPURLResponse).statusCode
  }

  @Test func `the way from nothing to a served company`() async throws {
    let tenant = try command("tenant", "create", "Acme", "--data", command.data)
    #expect(tenant.code == 0)
    #expect(UUID(uuidString: tenant.value) != nil)
    let password = folder("password")
    try Data("correct horse battery\n".utf8).write(to: URL(fileURLWithPath: password))
    let admin = try command(
      "admin", "create", "--data", command.data, "--tenant", "Acme", "--email", "a@example.com", "--password-file",
      password)
    #expect(admin.code == 0)
    let piped = try command(
      "admin", "create", "--data", command.data, "--tenant", tenant.value, "--email", "b@example.com",
      "--password-file", "-", input: "correct horse battery")
    #expect(piped.code == 0)

    let served = try await command.serving { url in
      #expect(url.hasPrefix("http://127.0.0.1:") && !url.hasSuffix(":0"))
      #expect(try await status(url + "/health") == 200)
      // While the server runs, the other commands work, and it knows at once what they did.
      let token = try command("token", "create", "--data", command.data, "--tenant", "Acme", "--role", "auditor")
      #expect(token.code == 0)
      #expect(try await status(url + "/items", token: token.value) == 200)
      #expect(try await status(url + "/items") == 401)
      let code = try command("enrollment", "create", "--data", command.data, "--tenant", "Acme")
      #expect(EnrollmentCode(code.value) != nil)
      #expect(code.output == code.value + "\n")
    }
    #expect(served.code == 0)
    #expect(served.error.contains("stopped"))
    #expect(!served.error.contains("Acme"))
  }

  @Test func `SIGINT ends it well, too`() async throws {
    let served = try await command.serving(signal: SIGINT) { url in
      let answer = try await status(url + "/health")
      #expect(answer == 200)
    }
    #expect(served.code == 0)
  }

  @Test func `with --json everything is told`() throws {
    let tenant = try json(try command("tenant", "create", "Acme", "--data", command.data, "--json").output)
    #expect(tenant["name"] as? String == "Acme")
    #expect((tenant["rootFingerprint"] as? String)?.count == 64)
    let token = try json(
      try command(
        "token", "create", "--data", command.data, "--tenant", "Acme", "--role", "owner", "--expires-in", "2h", "--json"
      ).output)
    #expect(token["role"] as? String == "owner")
    #expect(token["tenant"] as? String == tenant["id"] as? String)
    #expect((token["token"] as? String)?.hasPrefix("coffer_api_") == true)
    #expect(token["expiresAt"] is Int)
    let code = try json(
      try command("enrollment", "create", "--data", command.data, "--tenant", "Acme", "--json").output)
    #expect(EnrollmentCode(code["code"] as? String ?? "") != nil)
  }

  @Test func `each refusal has its exit code, one line of text and no output`() throws {
    #expect(try command("tenant", "create", "Acme", "--data", command.data).code == 0)
    try Data("short\n".utf8).write(to: URL(fileURLWithPath: folder("short")))
    try Data("one line is fine\nanother is not\n".utf8).write(to: URL(fileURLWithPath: folder("lines")))
    try Data("nothing".utf8).write(to: URL(fileURLWithPath: folder("pem")))
    let data = ["--data", command.data]
    let admin = ["admin", "create", "--tenant", "Acme", "--email", "a@example.com"] + data
    let tls = ["run", "--listen", "0.0.0.0:0"] + data
    let refused: [(Int32, [String])] = [
      (73, ["tenant", "create", "Acme"] + data),
      (64, ["tenant", "create", ""] + data),
      (66, ["token", "create", "--tenant", "Nobody", "--role", "owner"] + data),
      (66, ["token", "create", "--tenant", "Acme", "--role", "owner", "--data", folder("none")]),
      (73, ["tenant", "create", "Acme", "--data", folder.path]),
      (66, admin + ["--password-file", folder("absent")]),
      (64, admin + ["--password-file", folder("short")]),
      (64, admin + ["--password-file", folder("lines")]),
      (64, ["token", "create", "--tenant", "Acme", "--role", "owner", "--expires-in", "1s"] + data),
      (64, ["run", "--listen", "0.0.0.0:0"] + data),
      (66, tls + ["--tls-certificate", folder("absent"), "--tls-key", folder("pem")]),
      (65, tls + ["--tls-certificate", folder("pem"), "--tls-key", folder("pem")]),
    ]
    for (code, arguments) in refused {
      let process = try command.run(arguments)
      #expect(process.code == code, "\(arguments): \(process.error)")
      #expect(process.output.isEmpty)
      #expect(process.error.split(separator: "\n").count == 1)
      #expect(process.error.hasPrefix("coffer-server: "))
      #expect(!process.error.contains(folder.path))
    }
    #expect(!FileManager.default.fileExists(atPath: folder("none")))
  }

  @Test func `commands beside a running server leave its store whole, also those that fail`() async throws {
    #expect(try command("tenant", "create", "Acme", "--data", command.data).code == 0)
    var tokens: [String] = []
    let served = try await command.serving { url in
      for arguments in [
        ["enrollment", "create", "--tenant", "Acne"], ["token", "create", "--tenant", "Acne", "--role", "owner"],
        ["tenant", "create", "Acme"],
      ] {
        #expect(try command.run(arguments + ["--data", command.data]).code != 0)
        // Each has opened the store and closed it again. Server and commands still see what the others do.
        let made = try command("token", "create", "--tenant", "Acme", "--role", "owner", "--data", command.data)
        tokens.append(made.value)
        #expect(try await status(url + "/v1/apps", token: made.value) == 200, "\(arguments)")
        let item = try await DiskTests.send(
          "POST", url + "/items", token: made.value, json: Company.item("\(tokens.count)"))
        #expect(item.status == 201)
      }
    }
    #expect(served.code == 0)
    let again = try await command.serving { url in
      for token in tokens { #expect(try await status(url + "/v1/apps", token: token) == 200) }
      let item = try await DiskTests.send("POST", url + "/items", token: tokens[0], json: Company.item("1"))
      #expect(item.status == 409, "what the server wrote is there")
    }
    #expect(again.code == 0)
  }

  @Test func `an address that is taken is told as such`() async throws {
    _ = try await command.serving { url in
      let second = try command("run", "--data", folder("second"), "--listen", String(url.dropFirst("http://".count)))
      #expect(second.code == 69)
      #expect(second.output.isEmpty)
    }
  }

  @Test(arguments: [
    ["run", "--tls-key", "k"], ["run", "--listen", "localhost"], ["run", "--listen", "::1:80"],
    ["run", "--listen", ":80"], ["run", "--listen", "localhost:65536"], ["token", "create", "--tenant", "Acme"],
    ["token", "create", "--tenant", "Acme", "--role", "root"], ["tenant", "create"], ["nothing"],
    ["enrollment", "create", "--tenant", "Acme", "--expires-in", "soon"],
    ["enrollment", "create", "--tenant", "Acme", "--expires-in", "-1h"],
  ])
  func `wrong usage is told as such`(arguments: [String]) throws {
    let result = try command.run(arguments)
    #expect(result.code == 64)
    #expect(result.output.isEmpty)
    #expect(!FileManager.default.fileExists(atPath: folder("xdg")))
  }

  @Test(arguments: [
    ["run"], ["tenant", "create"], ["admin", "create"], ["token", "create"], ["enrollment", "create"],
  ])
  func `each command's help has an example`(arguments: [String]) throws {
    let help = try command.run(arguments + ["--help"])
    #expect(help.code == 0)
    #expect(help.output.contains("Example:\n  coffer-server \(arguments.joined(separator: " "))"))
  }

  @Test func `without --data it is the user's data folder`() throws {
    #expect(try command("tenant", "create", "Acme").code == 0)
    #expect(FileManager.default.fileExists(atPath: folder("xdg") + "/coffer-server/coffer.sqlite"))
    let version = try command("--version")
    #expect(version.code == 0)
    #expect(version.value.split(separator: ".").count == 3)
  }
}
