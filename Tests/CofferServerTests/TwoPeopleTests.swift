import CofferAPI
import CofferCrypto
import CofferPolicy
import CofferServerSQLite
import CofferSystem
import Foundation
import HTTPTypes
import Testing

@testable import CofferServer

/// Where a company asks two people, one alone lets nothing more through by whatever devices decide by.
@Suite struct TwoPeopleTests {
  struct Shown: Decodable {
    let groups: [String]
    let requestedGroups: [String]?
  }

  let harness: Harness
  let company: Company

  init() async throws {
    harness = try Harness()
    company = try await harness.company()
  }

  private func askTwo() async throws {
    let path = "/v1/approval-settings"
    let reply = try await harness.send(
      .put, path, token: company.owner, headers: [.ifMatch: try await company.tag(path)], json: #"{"twoPeople":true}"#)
    #expect(reply.status == 200)
  }

  private func put(_ path: String, _ json: String) async throws -> Reply {
    try await harness.send(
      .put, path, token: company.owner, headers: [.ifMatch: try await company.tag(path)], json: json)
  }

  @Test func `settings, grace and file types are loosened by two, and tightened by one`() async throws {
    #expect(
      try await put("/v1/settings", #"{"ownerActions":["view","import"],"allowFilteredTier":false}"#).status == 200)
    #expect(try await put("/v1/grace", #"{"warnAfter":100,"blockAfter":200}"#).status == 200)
    let managed = #"{"passcodeMinimumLength":8,"lockAfterMinutes":5,"protectionAtLeast":"complete","logLevel":"info"}"#
    #expect(try await put("/v1/managed-settings", managed).status == 200)
    _ = try await harness.send(
      .post, "/v1/file-types", token: company.owner, json: #"{"extension":"dwg","mediaTypes":["image/x-a"]}"#)
    try await askTwo()
    let before = try await harness.current(company.tenant).number
    for (path, json) in [
      ("/v1/settings", #"{"ownerActions":["view","import","mount"],"allowFilteredTier":false}"#),
      ("/v1/settings", #"{"ownerActions":["view"],"allowFilteredTier":true}"#),
      ("/v1/grace", #"{"warnAfter":100,"blockAfter":201}"#),
      ("/v1/managed-settings", #"{"passcodeMinimumLength":7,"lockAfterMinutes":5,"protectionAtLeast":"complete"}"#),
      ("/v1/managed-settings", #"{"passcodeMinimumLength":8,"lockAfterMinutes":6,"protectionAtLeast":"complete"}"#),
      ("/v1/managed-settings", #"{"passcodeMinimumLength":8,"lockAfterMinutes":5}"#), ("/v1/managed-settings", "{}"),
      ("/v1/file-types/dwg", #"{"extension":"dwg","mediaTypes":["image/x-a","image/x-b"]}"#),
    ] {
      let reply = try await put(path, json)
      #expect(reply.status == 409, "\(json) \(reply.status)")
    }
    let type = #"{"extension":"step","mediaTypes":["model/step"]}"#
    #expect(try await harness.send(.post, "/v1/file-types", token: company.owner, json: type).status == 409)
    #expect(try await harness.current(company.tenant).number == before)
    for (path, json) in [
      ("/v1/settings", #"{"ownerActions":["view"],"allowFilteredTier":false}"#),
      ("/v1/grace", #"{"warnAfter":150,"blockAfter":199}"#),
      ("/v1/managed-settings", #"{"passcodeMinimumLength":9,"lockAfterMinutes":4,"protectionAtLeast":"complete"}"#),
      ("/v1/file-types/dwg", #"{"extension":"dwg","mediaTypes":[]}"#),
    ] {
      let reply = try await put(path, json)
      #expect(reply.status == 200 || (path.contains("file-types") && reply.status == 422), "\(json)")
    }
    // An earlier revision is no way around it.
    let current = try await harness.current(company.tenant)
    let restored = try await harness.send(
      .post, "/v1/revisions/\(before)/restore", token: company.owner, headers: [.ifMatch: "\"\(current.digest)\""])
    #expect(restored.status == 409)
  }

  @Test func `another who may open vaults, and servers that were not allowed, are less strict`() {
    func settings(_ managed: [String: JSONValue]?) -> Settings {
      Settings(ownerActions: [.view], allowFilteredTier: false, managed: managed)
    }
    func widens(_ old: [String: JSONValue]?, _ new: [String: JSONValue]?) -> Bool {
      TwoPeople.widens(from: settings(old), to: settings(new))
    }
    #expect(widens(nil, ["escrow": .boolean(true)]) && !widens(["escrow": .boolean(true)], nil))
    let (one, two) = (
      JSONValue.array([.string("a.example")]), JSONValue.array([.string("a.example"), .string("b.example")])
    )
    #expect(widens(["allowedServers": one], ["allowedServers": two]) && widens(["allowedServers": one], nil))
    #expect(!widens(["allowedServers": two], ["allowedServers": one]) && !widens(nil, ["allowedServers": one]))
    #expect(!widens(["logLevel": .string("info")], ["logLevel": .string("debug")]))
  }

  @Test func `a draft that loosens settings is published by another than who wrote it`() async throws {
    try await askTwo()
    let (first, second) = (try await Person(company, .editor), try await Person(company, .editor))
    struct Draft: Decodable {
      let id: String
      var content: PolicyContent
    }
    let made = try await first.send(.post, "/v1/drafts", json: "{}")
    let draft = try made.json(Draft.self)
    var content = draft.content
    content.settings.ownerActions.append(.saveCopy)
    content.grace = Grace(warnAfter: 1, blockAfter: content.grace.blockAfter + 1)
    let body = #"{"content":\#(String(decoding: try JSONEncoder().encode(content), as: UTF8.self))}"#
    let path = "/v1/drafts/\(draft.id)"
    let changed = try await first.send(.put, path, json: body, headers: [.ifMatch: try #require(made.headers[.eTag])])
    #expect(changed.status == 200)
    let tag: HTTPFields = [.ifMatch: try #require(changed.headers[.eTag])]
    #expect(try await first.send(.post, path + "/publish", headers: tag).status == 403)
    #expect(
      try await harness.send(.post, path + "/publish", token: company.owner, headers: tag).status == 403)
    #expect(try await second.send(.post, path + "/publish", headers: tag).status == 200)
    #expect(try await company.policy().settings.ownerActions.contains(.saveCopy))
  }

  /// One who changes something else in a draft, or has it made anew, is no second person for who wrote it.
  @Test func `a draft stays theirs who let it let more through`() async throws {
    try await askTwo()
    let first = try await Person(company, .editor)
    let (second, third) = (try await Person(company, .editor), try await Person(company, .editor))
    struct Draft: Decodable {
      let id: String
      var content: PolicyContent
    }
    let draft = try await first.send(.post, "/v1/drafts", json: "{}").json(Draft.self)
    let path = "/v1/drafts/\(draft.id)"
    var content = draft.content
    func save(_ person: Person) async throws {
      let body = #"{"content":\#(String(decoding: try JSONEncoder().encode(content), as: UTF8.self))}"#
      let headers: HTTPFields = [.ifMatch: try await company.tag(path)]
      #expect(try await person.send(.put, path, json: body, headers: headers).status == 200)
    }
    func publish(_ person: Person) async throws -> Int {
      let headers: HTTPFields = [.ifMatch: try await company.tag(path)]
      return try await person.send(.post, path + "/publish", headers: headers).status
    }
    content.settings.ownerActions.append(.saveCopy)
    try await save(first)
    content.classifications.append(Classification(id: "c", name: "C"))
    try await save(second)
    #expect(try await publish(first) == 403)
    content.grace.blockAfter += 1
    try await save(second)
    #expect(try await publish(first) == 403)
    #expect(try await publish(second) == 403)
    #expect(try await publish(third) == 200)
    #expect(try await company.policy().settings.ownerActions.contains(.saveCopy))
  }

  @Test func `an escrow key that two people asked for, or are to ask for, is replaced by nobody alone`() async throws {
    func delegate() async throws -> Int {
      let json = #"{"use":"escrow","key":"\#(Base64URL.encode(HybridKey().publicKey.bytes))"}"#
      let tag: HTTPFields = [.ifMatch: try await company.tag("/v1/keys")]
      return try await harness.send(
        .post, "/v1/keys/delegations", token: company.owner, headers: tag, json: json
      ).status
    }
    #expect(try await delegate() == 200)
    #expect(try await put("/v1/managed-settings", #"{"escrow":true}"#).status == 200)
    #expect(try await delegate() == 200)
    try await askTwo()
    #expect(try await delegate() == 409)
    #expect(try await put("/v1/managed-settings", "{}").status == 200)
    #expect(try await delegate() == 200)
    var content = try await Self.content(company)
    content.settings.managed = ["escrow": .boolean(true)]
    let body = #"{"content":\#(String(decoding: try JSONEncoder().encode(content), as: UTF8.self))}"#
    let made = try await Person(company, .editor).send(.post, "/v1/drafts", json: body)
    #expect(made.status == 201)
    #expect(try await delegate() == 409)
  }

  /// What is in force, as a new draft has it.
  private static func content(_ company: Company) async throws -> PolicyContent {
    struct Draft: Decodable { let content: PolicyContent }
    return try await Person(company, .editor).send(.post, "/v1/drafts", json: "{}").json(Draft.self).content
  }

  @Test func `a device's groups are changed by two where a rule names them`() async throws {
    for group in ["sales", "lab"] {
      _ = try await harness.send(
        .post, "/v1/groups", token: company.owner, json: #"{"id":"\#(group)","name":"A group"}"#)
    }
    let rule = #"{"id":"r","effect":"permit","groups":["sales"],"conditions":[]}"#
    #expect(try await harness.send(.post, "/v1/rules", token: company.owner, json: rule).status == 201)
    try await askTwo()
    let (first, second) = (try await Person(company, .editor), try await Person(company, .editor))
    let path = "/v1/devices/\(try await company.enroll().enrollment.deviceId)"
    func ask(_ person: Person?, _ groups: String) async throws -> (Int, Shown?) {
      let json = #"{"groups":[\#(groups)]}"#
      let tag: HTTPFields = [.ifMatch: try await company.tag(path)]
      let reply =
        if let person {
          try await person.send(.put, path, json: json, headers: tag)
        } else {
          try await harness.send(.put, path, token: company.owner, headers: tag, json: json)
        }
      return (reply.status, reply.status == 200 ? try reply.json(Shown.self) : nil)
    }
    // No rule is about it.
    #expect(try await ask(nil, #""lab""#).1?.groups == ["lab"])
    #expect(try await ask(nil, #""lab","sales""#).0 == 403)
    let asked = try await ask(first, #""lab","sales""#)
    #expect(asked.1?.groups == ["lab"] && asked.1?.requestedGroups == ["lab", "sales"])
    // Neither the same person again, nor another who asks for something else.
    #expect(try await ask(first, #""lab","sales""#).1?.groups == ["lab"])
    #expect(try await ask(second, #""sales""#).1?.groups == ["lab"])
    let made = try await ask(first, #""sales""#)
    #expect(made.1?.groups == ["sales"] && made.1?.requestedGroups == nil)
    // Somebody who may no more does not stand behind it.
    _ = try await ask(first, "")
    try await harness.store.write {
      try $0.deleteAdministrator(tenant: company.tenant.id, id: first.administrator.id)
    }
    #expect(try await ask(second, "").1?.groups == ["sales"])
    // A group that a rule names is not taken away by one either.
    let removed = try await second.send(
      .delete, "/v1/groups/sales", headers: [.ifMatch: try await company.tag("/v1/groups/sales")])
    #expect(removed.status == 409)
    let kinds = try await company.auditEntries().filter { $0.details["kind"] == "device-groups" }
    #expect(!kinds.isEmpty && kinds.allSatisfy { $0.details["after"] != nil })
  }

  @Test func `a group that is removed leaves nothing in its devices`() async throws {
    _ = try await company.make("/v1/groups", #"{"id":"sales","name":"Sales"}"#)
    let path = "/v1/devices/\(try await company.enroll().enrollment.deviceId)"
    #expect(try await put(path, #"{"groups":["sales"]}"#).status == 200)
    func remake() async throws {
      let removed = try await harness.send(
        .delete, "/v1/groups/sales", token: company.owner,
        headers: [.ifMatch: try await company.tag("/v1/groups/sales")])
      #expect(removed.status == 204)
      _ = try await company.make("/v1/groups", #"{"id":"sales","name":"Another"}"#)
    }
    try await remake()
    #expect(try await harness.send(.get, path, token: company.owner).json(Shown.self).groups == [])
    let told = try await company.auditEntries().last { $0.action == "device.changed" }
    #expect(told?.subject.map { path.hasSuffix($0) } == true && told?.details["groups"] == "")
  }

  @Test func `a file type may be called c++`() async throws {
    let type = #"{"extension":"c++","mediaTypes":["text/x-c++"]}"#
    let made = try await harness.send(.post, "/v1/file-types", token: company.owner, json: type)
    #expect(made.status == 201)
    let location = try #require(made.headers[.location])
    for path in [location, "/v1/file-types/c%2B%2B"] {
      #expect(try await harness.send(.get, path, token: company.owner).status == 200, "\(path)")
    }
    let changed = try await put(location, #"{"extension":"c++","mediaTypes":["text/x-c"]}"#)
    #expect(changed.status == 200)
    let person = try await Person(company)
    #expect(try await person.send(.get, "/console/file-types/c++").status == 200)
    let removed = try await harness.send(
      .delete, location, token: company.owner, headers: [.ifMatch: try await company.tag(location)])
    #expect(removed.status == 204)
    #expect(try await harness.send(.get, "/v1/file-types/C++", token: company.owner).status == 404)
  }
}
