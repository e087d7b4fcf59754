import Foundation
import Testing

/// The stream of events, over real sockets: policy that holds as soon as it is made, and a server that comes and goes.
@Suite struct CompanyLinkTests {
  @Test func `a change holds at the agent without anyone asking for it`() async throws {
    let company = try await CompanyDesk()
    let desk = company.desk
    try desk.done("put", "passcode", "/file")
    let watch = try company.linkedAgent()
    try desk.unserved(77, "saveCopy", "cat", "/file")
    try await company.server.allowOwner(["import", "saveCopy"])
    try watch.until("applied")
    try watch.until("confirmed")
    #expect(try desk.served("cat", "/file").bytes == Array((Desk.passcode + "\n").utf8))
    try await company.server.allowOwner(["import"])
    try watch.until("applied")
    try desk.unserved(77, "saveCopy", "cat", "/file")
    #expect(try desk.agentStatus()?["company"] as? String == "connected")
    #expect(watch.end().code == 130)
    #expect(company.server.stop().code == 0)
    try desk.served("agent", "stop")
  }

  @Test func `without an agent the command itself holds the vault to its company`() async throws {
    let company = try await CompanyDesk()
    let watch = try company.watch(["--passcode-file", "passcode"])
    try watch.until("confirmed")
    try await company.server.allowOwner(["import", "saveCopy"])
    let revision = try #require(try watch.until("applied")["revision"] as? Int)
    #expect(watch.end().code == 130)
    // What it took over stays when it has gone.
    let shown = try company.desk.done("policy", "--json").bytes
    let policy = try #require(try JSONSerialization.jsonObject(with: Data(shown)) as? [String: Any])
    #expect(policy["revision"] as? Int == revision)
    #expect(policy["ownerActions"] as? [String] == ["import", "saveCopy"])
  }

  @Test func `a server that went away is found again, and what changed meanwhile holds`() async throws {
    let company = try await CompanyDesk()
    let desk = company.desk
    let watch = try company.linkedAgent()
    try watch.until("confirmed")
    #expect(company.server.stop().code == 0)
    try watch.until("disconnected")
    // Offline it goes on, by what it has.
    try desk.served("put", "passcode", "/offline")
    let port = try #require(company.server.url.split(separator: ":").last)
    let again = try RunningServer(at: desk, token: company.server.token, listen: "127.0.0.1:\(port)")
    try await again.allowOwner(["view"])
    try watch.until("applied")
    try desk.unserved(77, "import", "put", "passcode", "/refused")
    #expect(again.stop().code == 0)
    #expect(watch.end().code == 130)
    try desk.served("agent", "stop")
  }

  @Test func `a device that joins while an agent holds it is linked at once`() async throws {
    let desk = try Desk()
    try desk.makeVault(withRecoveryKey: false)
    let server = try RunningServer(at: desk)
    try desk.unlock()
    #expect(try desk.agentStatus()?["company"] == nil)
    try desk.unserved(66, "coffer enroll", "policy", "watch")
    try desk.served("enroll", server.url, server.enrollmentCode())
    let watch = Watch(try desk.start("coffer", ["policy", "watch", "--json"]))
    #expect(try watch.next()["event"] as? String == "watching")
    try await server.allowOwner(["view"])
    try watch.until("applied")
    // Whoever watches is told of the agent's end by it.
    try desk.served("agent", "stop")
    #expect(watch.program.wait().code == 130)
    #expect(server.stop().code == 0)
  }

  @Test func `a watch does not keep the vault from being locked for want of use`() async throws {
    let company = try await CompanyDesk()
    try company.desk.unlock("--idle-lock", "0.01", "--grace", "0")
    let watch = try company.watch()
    _ = try company.desk.agentStatus("--until-locked")
    #expect(try company.desk.agentState == "locked")
    // Locked, it is still the company's.
    try await company.server.allowOwner(["view"])
    try watch.until("applied")
    #expect(watch.end().code == 130)
    try company.desk.served("agent", "stop")
  }
}
