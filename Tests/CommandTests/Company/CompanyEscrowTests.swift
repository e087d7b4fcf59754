import Foundation
import Testing

/// A company's escrow key: put in by policy, and a passcode that is cleared with it, with both programs.
@Suite struct CompanyEscrowTests {
  @Test func `a passcode is cleared by order, with a code, once, and both audits have it`() async throws {
    let company = try await CompanyDesk()
    let desk = company.desk
    try desk.done("put", "passcode", "/file")
    let fingerprint = try await company.askForEscrow()
    // Told at the first unlock, and wherever somebody looks.
    #expect(try desk.done("ls").errors.contains(fingerprint))
    #expect(try !desk.done("ls").errors.contains(fingerprint))
    #expect(
      try desk.done("info").output.contains("the company's policy has its key open this vault, too: \(fingerprint)"))
    #expect(try desk.done("policy").output.contains(fingerprint))
    let unlocked = try desk.run("coffer", ["unlock", "--passcode-file", "passcode"])
    #expect(unlocked.code == 0 && unlocked.errors.contains(fingerprint))
    #expect(try desk.run("coffer", ["agent", "status"]).output.contains(fingerprint))
    let watch = try company.watch()
    let record = try await company.escrowRecord()
    #expect(try await company.treatment("escrow") == "honoured")
    try desk.served("lock", "--now")
    // Whoever has the company's key makes a clearing and a code.
    let made = try company.clear(record)
    let order = try await company.clearOrder(made)
    try watch.until("order") { $0["kind"] as? String == "clearPasscode" }
    _ = try await company.wait(for: order, toBe: "done")
    // Another code is refused, and takes nothing away: the agent stays.
    let wrong = try company.clear(record)
    try company.recover(wrong, code: 77, says: "not the one")
    #expect(try desk.agentState == "locked")
    try company.recover(made)
    // The agent has ended, and with it what watched it.
    #expect(watch.program.wait().code == 130)
    try desk.refused(77, "passcode is wrong", running: ["ls"])
    try desk.write("passcode", "a new passcode\n")
    #expect(try desk.done("ls").output == "file\n")
    // Used is used.
    try company.recover(made, code: 66, says: "not cleared")
    // The same clearing again, in a new order: it is for a key that the device has no more.
    let second = try company.linkedAgent()
    let replayed = try await company.clearOrder(made)
    let refused = try await company.wait(for: replayed, toBe: "refused")
    #expect((refused["reason"] as? String)?.contains("not made for this device") == true, "\(refused)")
    // Both audits.
    let events = try await company.events(upTo: "clearingUsed")
    #expect(events == ["escrowKeyAdded", "passcodeCleared", "clearingUsed"])
    let shown = try desk.served("audit").output
    #expect(shown.contains("company  passcodeCleared") && shown.contains("owner  clearingUsed"))
    #expect(try desk.served("audit", "verify").output == "3 decisions, each as it was written\n")
    let audit = try await company.server.request("GET", "/v1/audit").body
    let text = String(decoding: audit, as: UTF8.self)
    #expect(text.contains("clearPasscode") && text.contains("command.answered"))
    #expect(!text.contains(made.clearing) && !text.contains(made.code))
    #expect(second.end().code == 130)
    try desk.served("agent", "stop")
  }

  @Test func `a vault that is not sealed to the key refuses, and so does an order without a clearing`() async throws {
    let company = try await CompanyDesk()
    let other = try await CompanyDesk()
    _ = try await other.askForEscrow()
    try other.desk.done("ls")
    let agent = try other.linkedAgent()
    let made = try other.clear(try await other.escrowRecord())
    let watch = try company.linkedAgent()
    let order = try await company.clearOrder(made)
    let refused = try await company.wait(for: order, toBe: "refused")
    #expect((refused["reason"] as? String)?.contains("asks for no escrow key") == true, "\(refused)")
    let none = try await company.server.request(
      "POST", "/v1/devices/\(company.device)/commands", json: ["kind": "clearPasscode"])
    #expect(none.status == 422)
    #expect(watch.end().code == 130)
    try company.desk.served("agent", "stop")
    try company.desk.done("ls")
    #expect(agent.end().code == 130)
    try other.desk.served("agent", "stop")
  }

  @Test func `a policy that asks no more has the key taken out, and leaves a person's own`() async throws {
    let company = try await CompanyDesk()
    let desk = company.desk
    _ = try await company.askForEscrow()
    #expect(try desk.done("ls").errors.contains("can from now on open this vault"))
    try await company.putManaged([:])
    try desk.done("policy", "refresh")
    #expect(try desk.done("ls").errors.contains("does not open this vault any more"))
    #expect(try !desk.done("info").output.contains("escrow"))
    // One that the person chose stays.
    let own = try desk.run("coffer", ["escrow", "keygen", "own.key"])
    try desk.write("own.pub", own.output)
    try desk.done("passcode", "--new-passcode-file", "passcode", "--escrow-key", "own.pub")
    try desk.done("ls")
    #expect(try desk.done("info").output.contains("a company's key opens the vault, too"))
  }

  @Test func `where no order arrives, the clearing itself does, also after the agent has ended`() async throws {
    let company = try await CompanyDesk()
    let desk = company.desk
    try desk.done("put", "passcode", "/file")
    _ = try await company.askForEscrow()
    let watch = try company.linkedAgent()
    let record = try await company.escrowRecord()
    #expect(watch.end().code == 130)
    try desk.served("agent", "stop")
    let made = try company.clear(record)
    try desk.write("clearing", made.clearing + "\n")
    try company.recover(made, "--clearing-file", "clearing")
    try desk.refused(77, "passcode is wrong", running: ["ls"])
    try desk.write("passcode", "a new passcode\n")
    try desk.done("ls")
    let audit = try desk.done("audit").output
    #expect(audit.contains("company  passcodeCleared") && audit.contains("owner  clearingUsed"), "\(audit)")
    try company.recover(made, "--clearing-file", "clearing", code: 77, says: "not made for this device")
    // For a whole different vault it is nothing.
    try desk.done("init", "--no-recovery-key", "--vault", "other")
    try company.recover(
      made, "--clearing-file", "clearing", "--vault", "other", code: 77, says: "no clearing key")
  }

  @Test func `a change of the passcode that seals the vault to the company says so`() async throws {
    let company = try await CompanyDesk()
    let fingerprint = try await company.askForEscrow()
    try company.desk.write("new", "a new passcode\n")
    let changed = try company.desk.run(
      "coffer", ["passcode", "--passcode-file", "passcode", "--new-passcode-file", "new"])
    #expect(changed.code == 0 && changed.errors.contains(fingerprint), "\(changed.errors)")
  }

  @Test func `a record that was changed on its way gets no clearing`() async throws {
    let company = try await CompanyDesk()
    let desk = company.desk
    _ = try await company.askForEscrow()
    let watch = try company.linkedAgent()
    let record = try await company.escrowRecord()
    let text = String(decoding: record, as: UTF8.self)
    var object = try #require(try JSONSerialization.jsonObject(with: record) as? [String: Any])
    let key = try desk.run("coffer", ["escrow", "keygen", "server.key", "--json"])
    let own = try #require(try JSONSerialization.jsonObject(with: Data(key.bytes)) as? [String: Any])
    func refused(_ record: Data, _ says: String, key: String = "company.key", code: Int32) throws {
      try desk.write("device.json", Array(record))
      let outcome = try desk.run("coffer", ["escrow", "clear", "device.json", "--escrow-key-file", key])
      #expect(outcome.code == code && outcome.output.isEmpty && outcome.errors.contains(says), "\(outcome)")
    }
    // The server's own key in the place of the device's; another device's name; another private key.
    var report = try #require(object["report"] as? [String: Any])
    var escrow = try #require(report["escrow"] as? [String: Any])
    escrow["clearingKey"] = own["publicKey"]
    report["escrow"] = escrow
    object["report"] = report
    try refused(try JSONSerialization.data(withJSONObject: object), "handed in", code: 65)
    try refused(Data(text.replacing(company.device, with: "another").utf8), "handed in", code: 65)
    try refused(record, "not the one", key: "server.key", code: 77)
    try refused(Data("{}".utf8), "not a device's record", code: 65)
    try refused(Data(#"{"id":"x"}"#.utf8), "handed in nothing", code: 66)
    #expect(watch.end().code == 130)
    try desk.served("agent", "stop")
  }

  @Test func `a use of the company's key itself is in the device's decisions, and reaches the company`() async throws {
    let company = try await CompanyDesk()
    let desk = company.desk
    _ = try await company.askForEscrow()
    try desk.done("ls")
    try desk.write("new", "a new passcode\n")
    let recovered = try desk.run(
      "coffer", ["recover", "--escrow-key-file", "company.key", "--new-passcode-file", "new"])
    #expect(recovered.code == 0, "\(recovered.errors)")
    try desk.write("passcode", "a new passcode\n")
    #expect(try desk.done("audit").output.contains("company  escrowKeyUsed"))
    let watch = try company.linkedAgent()
    #expect(try await company.events(upTo: "escrowKeyUsed") == ["escrowKeyAdded", "escrowKeyUsed"])
    #expect(watch.end().code == 130)
    try desk.served("agent", "stop")
  }
}

extension CompanyDesk {
  struct Cleared {
    let clearing: String
    let code: String
  }

  func putManaged(_ values: [String: Any]) async throws {
    let tag = try await server.tag("/v1/managed-settings")
    let answer = try await server.request("PUT", "/v1/managed-settings", json: values, headers: ["If-Match": tag])
    try #require(answer.status == 200, "\(String(decoding: answer.body, as: UTF8.self))")
  }

  /// Delegates an escrow key, has the policy ask for it, and the device fetch that; returns the key's fingerprint.
  func askForEscrow() async throws -> String {
    let made = try desk.run("coffer", ["escrow", "keygen", "company.key", "--json"])
    let key = try #require(try JSONSerialization.jsonObject(with: Data(made.bytes)) as? [String: Any])
    let withoutKey = try await server.request(
      "PUT", "/v1/managed-settings", json: ["escrow": true],
      headers: ["If-Match": server.tag("/v1/managed-settings")])
    #expect(withoutKey.status == 409)
    let answer = try await server.request(
      "POST", "/v1/keys/delegations", json: ["use": "escrow", "key": try #require(key["publicKey"])],
      headers: ["If-Match": server.tag("/v1/keys")])
    try #require(answer.status == 200, "\(String(decoding: answer.body, as: UTF8.self))")
    try await putManaged(["escrow": true])
    let shown = try desk.done("policy", "refresh", "--json")
    let policy = try #require(try JSONSerialization.jsonObject(with: Data(shown.bytes)) as? [String: Any])
    return try #require(policy["escrowKeyFingerprint"] as? String)
  }

  /// The device's record, once it has handed in what a clearing is made for.
  func escrowRecord() async throws -> Data {
    while true {
      let answer = try await server.request("GET", "/v1/devices/\(device)")
      if let report = answer.object["report"] as? [String: Any], report["escrow"] != nil { return answer.body }
      await Task.yield()
    }
  }

  func treatment(_ setting: String) async throws -> String? {
    let report = try await shownDevice()["report"] as? [String: Any]
    return (report?["settings"] as? [String: String])?[setting]
  }

  /// `coffer escrow clear`, where the private key is.
  func clear(_ record: Data) throws -> Cleared {
    try desk.write("device.json", Array(record))
    let outcome = try desk.run(
      "coffer", ["escrow", "clear", "device.json", "--escrow-key-file", "company.key", "--json"])
    try #require(outcome.code == 0, "\(outcome.errors)")
    let made = try #require(try JSONSerialization.jsonObject(with: Data(outcome.bytes)) as? [String: Any])
    return Cleared(
      clearing: try #require(made["clearing"] as? String), code: try #require(made["code"] as? String))
  }

  func clearOrder(_ made: Cleared) async throws -> String {
    let answer = try await server.request(
      "POST", "/v1/devices/\(device)/commands", json: ["kind": "clearPasscode", "clearing": made.clearing])
    try #require(answer.status == 201, "\(String(decoding: answer.body, as: UTF8.self))")
    return try #require(answer.object["id"] as? String)
  }

  /// `coffer recover --cleared` with a code.
  func recover(_ made: Cleared, _ more: String..., code: Int32 = 0, says: String? = nil) throws {
    try desk.write("code", made.code + "\n")
    try desk.write("new", "a new passcode\n")
    let outcome = try desk.run(
      "coffer", ["recover", "--cleared", "--code-file", "code", "--new-passcode-file", "new"] + more)
    #expect(
      outcome.code == code && says.map { outcome.errors.contains($0) } ?? true, "\(outcome.code): \(outcome.errors)")
  }

  /// What happened on the device, as the company has it, once it has this.
  func events(upTo last: String) async throws -> [String] {
    while true {
      let answer = try await server.request("GET", "/v1/devices/\(device)/decisions").object
      let events = try (answer["items"] as? [[String: Any]] ?? []).compactMap { item in
        let text = try #require(item["entry"] as? String)
        return (try JSONSerialization.jsonObject(with: Data(text.utf8)) as? [String: Any])?["event"] as? String
      }
      if events.contains(last) { return events }
      await Task.yield()
    }
  }
}
