import Foundation
import Glibc
import Testing

/// A device and its company: what lets it in, what does not, and what cannot be undone.
@Suite struct EnrollmentTests {
  let desk: Desk

  init() throws { desk = try Desk() }

  @Test func `only the company's own, unused code lets a device in`() async throws {
    try desk.makeVault()
    let server = try RunningServer(at: desk)
    _ = try server.administer("tenant", "create", "Other")
    let code = try server.enrollmentCode()
    // Nobody listens there: the port was the system's choice a moment ago, for a server that has ended.
    let gone = try RunningServer(at: desk, data: "gone")
    #expect(gone.stop().code == 0)
    let elsewhere = try gone.enrollmentCode()
    let parts = code.split(separator: "-")
    let other = try server.enrollmentCode(tenant: "Other").split(separator: "-")

    for (url, code, exit, says) in [
      (gone.url, code, 69, "cannot be reached"),
      ("http://192.0.2.1", code, 77, "https://"),
      ("ftp://127.0.0.1", code, 64, "https://"),
      ("not a url", code, 64, "https://"),
      ("\(server.url)?x=1", code, 64, "https://"),
      (server.url, "", 64, "COF1-"),
      (server.url, "COF1-\(parts[1])", 64, "COF1-"),
      (server.url, String(code.dropLast()), 64, "COF1-"),
      (server.url, code + "a", 64, "COF1-"),
      (server.url, code.replacingOccurrences(of: "COF1", with: "COF2"), 64, "COF1-"),
      (server.url, elsewhere, 77, "unknown, used or expired"),
      // Another company's key behind a code that is good: whoever answers is not whom the code names.
      (server.url, "COF1-\(other[1])-\(parts[2])", 77, "not the one that the enrolment code names"),
      (server.url, "COF1-\(other[1])-\(other[2])", 77, "unknown, used or expired"),
    ] {
      try desk.refused(Int32(exit), says, running: ["enroll", url, code])
    }
    #expect(try desk.done("info").output.contains("none"))

    try desk.done("enroll", server.url, code)
    try desk.refused(73, "belongs to a company already", running: ["enroll", server.url, server.enrollmentCode()])
    desk.environment["COFFER_VAULT"] = desk.path("second")
    try desk.makeVault()
    try desk.refused(66, "coffer enroll", running: ["policy"])
    try desk.refused(66, "coffer enroll", running: ["policy", "refresh"])
    try desk.refused(77, "unknown, used or expired", running: ["enroll", server.url, code])
    desk.environment["COFFER_VAULT"] = desk.path("vault")

    // What a company takes back: the device is told, and holds to what it has.
    let policy = try #require(
      try JSONSerialization.jsonObject(with: Data(try desk.done("policy", "--json").bytes)) as? [String: Any])
    let device = try #require(policy["device"] as? String)
    #expect(try await server.request("DELETE", "/v1/devices/\(device)").status == 204)
    try desk.refused(77, "no longer lets this device in", running: ["policy", "refresh"])
    #expect(server.stop().code == 0)
    try desk.refused(69, "cannot be reached", running: ["policy", "refresh"])
    let after = try JSONSerialization.jsonObject(with: Data(try desk.done("policy", "--json").bytes)) as? [String: Any]
    #expect(after?["revision"] as? Int == policy["revision"] as? Int)
  }

  @Test func `removing files never un-enrols`() throws {
    let id = try desk.makeVault()
    try desk.done("put", "-", "/mine", input: [1, 2, 3])
    try desk.copy("vault", to: "vault-before")
    let server = try RunningServer(at: desk)
    try desk.done("enroll", server.url, server.enrollmentCode())
    #expect(server.stop().code == 0)
    try desk.done("put", "-", "/company", input: noise(5000))
    let get = ["get", "/mine", "out"]
    try desk.refused(77, "saveCopy", running: get, unchanged: ["out"])

    // The mark in the key store is gone, and the vault still knows.
    try FileManager.default.moveItem(atPath: desk.path("keys/\(id)/enrolment"), toPath: desk.path("mark"))
    try desk.refused(77, "saveCopy", running: get, unchanged: ["out"])
    try desk.refused(77, "saveCopy", running: ["cat", "/company"])
    try desk.refused(73, "belongs to a company already", running: ["enroll", server.url, "COF1-x-y"])
    // It has put its mark back.
    #expect(desk.exists("keys/\(id)/enrolment"))

    // The vault of the time before is back, and the key store still knows.
    try FileManager.default.moveItem(atPath: desk.path("vault"), toPath: desk.path("vault-now"))
    try desk.copy("vault-before", to: "vault")
    try desk.refused(77, "policy is missing", running: get, unchanged: ["out"])
    #expect(try desk.done("info").output.contains("the policy is missing"))
    let anchorless = desk.path("keys/\(id)/anchor")
    try FileManager.default.moveItem(atPath: anchorless, toPath: desk.path("anchor"))
    try desk.refused(77, "policy is missing", running: get, unchanged: ["out"])
    try desk.refused(77, "policy is missing", running: ["put", "passcode", "/new"], unchanged: ["vault/objects"])
    // The vault's own anchor says it too.
    try FileManager.default.moveItem(atPath: desk.path("anchor"), toPath: anchorless)
    try desk.remove("keys/\(id)/enrolment")
    try desk.refused(77, "policy is missing", running: get, unchanged: ["out"])
    try desk.refused(77, "policy is missing", running: ["put", "passcode", "/new"], unchanged: ["vault/objects"])
    try desk.refused(66, running: ["cat", "/company"])

    try desk.remove("vault")
    try FileManager.default.moveItem(atPath: desk.path("vault-now"), toPath: desk.path("vault"))
    try desk.refused(77, "saveCopy", running: get, unchanged: ["out"])
  }

  @Test func `the server bounds what it takes`() async throws {
    let server = try RunningServer(at: desk)
    let item: [String: Any] = [
      "name": "Editor", "bundleId": "com.acme.editor", "teamId": "ACME", "extensions": ["pdf"], "actions": ["openIn"],
    ]
    #expect(try await server.request("POST", "/items", json: item, token: "").status == 401)
    #expect(try await server.request("POST", "/items", json: item, token: "coffer_api_unknown").status == 401)
    var large = item
    large["name"] = String(repeating: "x", count: 70_000)
    let refusal = try await server.request("POST", "/items", json: large)
    #expect(refusal.status == 413)
    #expect(refusal.object["type"] as? String == "urn:coffer:problem:body-too-large")
    #expect(try await server.request("POST", "/items", json: item).status == 201)
    #expect(try await server.request("POST", "/items", json: item).status == 409)
    #expect(server.stop().code == 0)
  }

  @Test func `a server's own certificate is trusted where it is pinned, and nowhere else`() throws {
    for name in ["own", "stranger"] {
      let made = try desk.run(
        "/usr/bin/openssl",
        [
          "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-subj",
          "/CN=\(name)", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", "\(name).key", "-out", "\(name).pem",
        ])
      try #require(made.code == 0, "\(made.errors)")
    }
    let server = try RunningServer(at: desk, options: ["--tls-certificate", "own.pem", "--tls-key", "own.key"])
    #expect(server.url.hasPrefix("https://127.0.0.1:"))
    try desk.makeVault()
    let code = try server.enrollmentCode()
    let says = "not secure"
    try desk.refused(69, says, running: ["enroll", server.url, code])
    try desk.refused(69, says, running: ["enroll", server.url, code, "--pin-certificate", "stranger.pem"])
    try desk.refused(64, "PEM", running: ["enroll", server.url, code, "--pin-certificate", "own.key"])
    try desk.refused(66, running: ["enroll", server.url, code, "--pin-certificate", "absent.pem"])
    // TLS is not spoken to a server that is asked without it.
    let plain = server.url.replacingOccurrences(of: "https", with: "http")
    try desk.refused(69, running: ["enroll", plain, code])
    // None of it used the code up, and the pin is kept for later.
    try desk.done("enroll", server.url, code, "--pin-certificate", "own.pem")
    try desk.done("policy", "refresh")
    #expect(server.stop().code == 0)
  }
}
