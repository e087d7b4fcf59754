import Foundation
import Glibc
import Testing

/// What a device tells its company, and what the company set for it.
@Suite struct CompanyReportTests {
  /// Changes something that has to be read first.
  func put(_ company: CompanyDesk, _ path: String, _ json: [String: Any]) async throws -> RunningServer.Answer {
    let tag = try await company.server.tag(path)
    return try await company.server.request("PUT", path, json: json, headers: ["If-Match": tag])
  }

  /// Waits until the device has reported the company's newest revision.
  func reported(_ company: CompanyDesk) async throws -> [String: Any] {
    while true {
      let shown = try await company.shownDevice()
      if let report = shown["report"] as? [String: Any],
        report["appliedRevision"] as? Int == shown["desiredRevision"] as? Int
      {
        return report
      }
      await Task.yield()
    }
  }

  @Test func `the company sees what the device applied, and what it is`() async throws {
    let company = try await CompanyDesk()
    #expect(try await company.shownDevice()["report"] == nil)
    let watch = try company.linkedAgent()
    let first = try await reported(company)
    try await company.server.allowOwner(["view"])
    let second = try await reported(company)
    #expect(try #require(second["appliedRevision"] as? Int) > (first["appliedRevision"] as? Int ?? 0))
    let shown = try company.desk.served("policy", "--json").bytes
    let policy = try #require(try JSONSerialization.jsonObject(with: Data(shown)) as? [String: Any])
    #expect(second["appliedRevision"] as? Int == policy["revision"] as? Int)
    #expect((second["appliedDigest"] as? String)?.count == 64)
    #expect(second["isPasscodeSet"] as? Bool == true && second["isProtectionAvailable"] as? Bool == false)
    #expect((second["osVersion"] as? String)?.contains(".") == true)
    #expect(second["version"] as? String == (try company.desk.run("coffer", ["--version"]).value))
    #expect(watch.end().code == 130)
    try company.desk.served("agent", "stop")
  }

  @Test func `decisions reach the company in their order, and a killed process leaves no lie`() async throws {
    let company = try await CompanyDesk()
    let desk = company.desk
    try desk.done("put", "passcode", "/secret name.txt")
    try desk.refused(77, "saveCopy", running: ["cat", "/secret name.txt"])
    let watch = try company.linkedAgent()
    try desk.unserved(77, "saveCopy", "get", "/secret name.txt", "out")
    try await company.server.allowOwner(["import", "saveCopy"])
    try watch.until("applied")
    try desk.served("cat", "/secret name.txt")
    let agent = try desk.agentProcess()
    kill(agent, SIGKILL)
    _ = watch.program.wait()
    let again = try company.linkedAgent()
    try again.until("confirmed")
    // What comes next is asked for once more, behind what was sent.
    try await company.server.allowOwner(["import"])
    try again.until("applied")
    let path = "/v1/devices/\(company.device)/decisions"
    var items: [[String: Any]] = []
    while items.count < 3 {
      items = try await company.server.request("GET", path).object["items"] as? [[String: Any]] ?? []
      await Task.yield()
    }
    let entries = try items.map { item in
      let text = try #require(item["entry"] as? String)
      return try #require(try JSONSerialization.jsonObject(with: Data(text.utf8)) as? [String: Any])
    }
    #expect(items.compactMap { $0["number"] as? Int } == [1, 2, 3])
    #expect(
      entries.compactMap { $0["reason"] as? String } == ["ownerActionNotAllowed", "ownerActionNotAllowed", "permitted"])
    #expect(entries.allSatisfy { $0["action"] as? String == "saveCopy" && $0["fileExtension"] as? String == "txt" })
    #expect(!items.description.contains("secret name"))
    let verified = try desk.served("audit", "verify", "--json").bytes
    let answer = try #require(try JSONSerialization.jsonObject(with: Data(verified)) as? [String: Any])
    #expect(answer["entries"] as? Int == 3 && answer["firstBroken"] == nil)
    #expect(try desk.served("audit").output.split(separator: "\n").count == 3)
    #expect(again.end().code == 130)
    try desk.served("agent", "stop")
  }

  @Test func `a refresh hands in what the company is to know`() async throws {
    let company = try await CompanyDesk()
    let desk = company.desk
    try desk.done("put", "passcode", "/file.txt")
    let watch = try company.linkedAgent()
    try watch.until("confirmed")
    try desk.unserved(77, "saveCopy", "get", "/file.txt", "out")
    try desk.served("policy", "refresh")
    // The link has worked once more, though nothing came from the company.
    try watch.until("confirmed")
    var items: [Any] = []
    while items.isEmpty {
      let answer = try await company.server.request("GET", "/v1/devices/\(company.device)/decisions")
      items = answer.object["items"] as? [Any] ?? []
      await Task.yield()
    }
    #expect(items.count == 1)
    #expect(watch.end().code == 130)
    try desk.served("agent", "stop")
  }

  @Test func `groups that the company gives a device decide, and stop deciding`() async throws {
    let company = try await CompanyDesk(ownerActions: ["import", "saveCopy"])
    let desk = company.desk
    try desk.done("put", "passcode", "/file")
    let server = company.server
    let group = try await server.request("POST", "/v1/groups", json: ["id": "trial", "name": "Trial"])
    #expect(group.status == 201, "\(String(decoding: group.body, as: UTF8.self))")
    let rule: [String: Any] = [
      "id": "no-copies-on-trial", "effect": "forbid", "actions": ["saveCopy"], "groups": ["trial"], "conditions": [],
    ]
    #expect(try await server.request("POST", "/v1/rules", json: rule).status == 201)
    let watch = try company.linkedAgent()
    try watch.until("confirmed")
    try desk.served("cat", "/file")
    let device = "/v1/devices/\(company.device)"
    #expect(try await put(company, device, ["groups": ["trial"]]).status == 200)
    // No revision changed: the signed status says it. A link that begins is confirmed twice, so that the word may be of before.
    try watch.until("confirmed")
    while try desk.coffer("cat", "/file").code == 0 {}
    try desk.unserved(77, "no-copies-on-trial", "cat", "/file")
    // It stays so without a server, and for a process that comes after.
    #expect(watch.end().code == 130)
    try desk.served("agent", "stop")
    try desk.refused(77, "no-copies-on-trial", running: ["cat", "/file"])
    let again = try company.linkedAgent()
    try again.until("confirmed")
    #expect(try await put(company, device, ["groups": [String]()]).status == 200)
    try again.until("confirmed")
    while try desk.coffer("cat", "/file").code == 77 {}
    try desk.served("cat", "/file")
    #expect(again.end().code == 130)
    try desk.served("agent", "stop")
  }

  @Test func `managed settings hold on the device, and the company hears of each`() async throws {
    let company = try await CompanyDesk()
    let desk = company.desk
    try desk.done("mkdir", "/weak")
    try desk.done("protect", "/weak", "none")
    try desk.write("short", "seven77\n")
    let path = "/v1/managed-settings"
    for (name, value) in [
      ("passcodeMinimumLength", 0 as Any), ("passcodeMinimumLength", "8"), ("protectionAtLeast", "strong"),
      ("lockAfterMinutes", 0), ("logLevel", "loud"), ("allowedServers", ["A B"]), ("passcodeRequired", 1.5),
      ("other", 1),
    ] {
      #expect(try await put(company, path, [name: value]).status == 422, "\(name)")
    }
    let watch = try company.linkedAgent()
    let settings: [String: Any] = [
      "passcodeRequired": true, "passcodeMinimumLength": 8, "protectionAtLeast": "complete-unless-open",
      "lockAfterMinutes": 3, "logLevel": "warning", "allowedServers": ["files.example:443"],
    ]
    #expect(try await put(company, path, settings).status == 200)
    // The owner's part is another resource, and leaves these alone.
    try await company.server.allowOwner(["import", "view"])
    let report = try await reported(company)
    #expect(
      report["settings"] as? [String: String] == [
        "ownerActions": "honoured", "grace": "honoured", "passcodeRequired": "honoured",
        "passcodeMinimumLength": "honoured", "protectionAtLeast": "honoured", "lockAfterMinutes": "honoured",
        "logLevel": "honoured", "allowedServers": "ignored",
      ])
    #expect(try desk.agentStatus()?["idleLockMinutes"] as? Double == 3)
    try desk.unserved(77, "protectionAtLeast", "protect", "/weak", "until-first-unlock")
    try desk.served("put", "passcode", "/weak/file")
    try desk.served("mkdir", "/weak/folder")
    for name in ["/weak/file", "/weak/folder"] {
      let shown = try desk.served("stat", name, "--json").output
      #expect(shown.contains("complete-unless-open"), "\(shown)")
    }
    let change = ["passcode", "--passcode-file", "passcode", "--new-passcode-file", "short"]
    expect(try desk.run("coffer", change), code: 77, says: ["passcodeMinimumLength"])
    #expect(watch.end().code == 130)
    try desk.served("agent", "stop")
    expect(try desk.run("coffer", change), code: 77, says: ["passcodeMinimumLength"])
    // The key store's word is not the only one, neither here nor where it was never said.
    try desk.remove("keys/\(company.vaultID)/enrolment")
    expect(try desk.run("coffer", change), code: 77, says: ["passcodeMinimumLength"])
    try desk.done("passcode", "--new-passcode-file", "passcode", "--new-recovery-key-file", "recovery")
    let recover = [
      "recover", "--recovery-key-file", "recovery", "--new-passcode-file", "short", "--key-store", "elsewhere",
    ]
    expect(try desk.run("coffer", recover), code: 77, says: ["passcodeMinimumLength"])
    #expect(!desk.exists("elsewhere/\(company.vaultID)"))
    #expect(try await put(company, path, [:]).status == 200)
    try desk.done("policy", "refresh")
    #expect(try desk.run("coffer", change).code == 0)
  }
}
