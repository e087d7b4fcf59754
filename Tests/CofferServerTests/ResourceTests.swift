import CofferAPI
import CofferCrypto
import CofferPolicy
import CofferServerSQLite
import Foundation
import HTTPTypes
import Testing

@testable import CofferServer

/// Rules and their like, drafts, simulation, earlier revisions; tags, keys and cursors.
@Suite struct ResourceTests {
  static let rule = #"{"id":"no-print","effect":"forbid","actions":["print"],"conditions":[]}"#

  @Test func `a rule is in the policy from its making to its end`() async throws {
    let harness = try Harness()
    let company = try await harness.company()
    let made = try await harness.send(.post, "/v1/rules", token: company.editor, json: Self.rule)
    #expect(made.status == 201)
    #expect(made.headers[.location] == "/v1/rules/no-print")
    #expect(try await company.policy().rules.map(\.id) == ["no-print"])
    #expect(try await harness.send(.post, "/v1/rules", token: company.editor, json: Self.rule).status == 409)
    let path = "/v1/rules/no-print"
    let tag = try await company.tag(path)
    #expect(made.headers[.eTag] == tag)
    let new = Self.rule.replacing("print\"]", with: "share\"]")
    #expect(try await harness.send(.put, path, token: company.editor, json: new).status == 428)
    func put(_ json: String, _ tag: String) async throws -> Reply {
      try await harness.send(.put, path, token: company.editor, headers: [.ifMatch: tag], json: json)
    }
    #expect(try await put(new, "\"0\"").status == 412)
    #expect(try await put(new, "W/\(tag)").status == 412)
    let changed = try await put(new, tag)
    #expect(changed.status == 200)
    #expect(try await put(Self.rule, tag).status == 412)
    #expect(try await company.policy().rules.first?.actions == [.share])
    #expect(try await harness.send(.delete, path, token: company.editor).status == 428)
    let current = try #require(changed.headers[.eTag])
    let gone = try await harness.send(.delete, path, token: company.editor, headers: [.ifMatch: current])
    #expect(gone.status == 204)
    #expect(try await company.policy().rules.isEmpty)
    #expect(try await RevisionTests.verifyChain(company).count == 4)
  }

  static let invalid: [(path: String, json: String)] = [
    ("/v1/rules", #"{"id":"a b","effect":"forbid","conditions":[]}"#),
    ("/v1/rules", #"{"id":"app:x","effect":"permit","conditions":[]}"#),
    ("/v1/rules", #"{"id":"minimum-version.x","effect":"forbid","conditions":[]}"#),
    ("/v1/rules", #"{"id":"r","effect":"allow","conditions":[]}"#),
    ("/v1/rules", #"{"id":"r","effect":"forbid","conditions":[],"extension":["pdf"]}"#),
    ("/v1/rules", #"{"id":"r","effect":"forbid","conditions":[{"kind":"weather"}]}"#),
    ("/v1/rules", #"{"id":"r","effect":"forbid","conditions":[{"kind":"deviceUnlocked","no":true}]}"#),
    ("/v1/rules", #"{"id":"r","effect":"forbid","actions":[],"conditions":[]}"#),
    ("/v1/rules", #"{"id":"r","effect":"forbid","classifications":["unknown"],"conditions":[]}"#),
    ("/v1/classifications", #"{"id":"x","name":""}"#),
    ("/v1/file-types", #"{"extension":"pdf","mediaTypes":["a/b"]}"#),
    ("/v1/file-types", #"{"extension":"dwg","mediaTypes":[]}"#),
    ("/v1/groups", #"{"id":"","name":"x"}"#),
  ]

  @Test(arguments: invalid)
  func `what devices would not accept is refused, and changes nothing`(path: String, json: String) async throws {
    let harness = try Harness()
    let company = try await harness.company()
    let before = try await harness.current(company.tenant).digest
    let reply = try await harness.send(.post, path, token: company.owner, json: json)
    #expect(reply.status == 422, "\(json)")
    #expect(try await harness.current(company.tenant).digest == before)
    #expect(try await harness.send(.get, path, token: company.owner).body == Array(#"{"items":[]}"#.utf8))
  }

  @Test func `a classification that a rule names is not taken away from it`() async throws {
    let harness = try Harness()
    let company = try await harness.company()
    _ = try await company.make("/v1/classifications", #"{"id":"secret","name":"Secret"}"#)
    _ = try await company.make(
      "/v1/rules", #"{"id":"r","effect":"forbid","classifications":["secret"],"conditions":[]}"#)
    let tag = try await company.tag("/v1/classifications/secret")
    let reply = try await harness.send(
      .delete, "/v1/classifications/secret", token: company.owner, headers: [.ifMatch: tag])
    #expect(reply.status == 422)
    #expect(try await company.policy().classifications.count == 1)
  }

  @Test func `pages together are the list, whatever their size`() async throws {
    struct Listed: Decodable {
      struct Entry: Decodable { let id: String }
      let items: [Entry]
      let next: String?
    }
    let harness = try Harness()
    let company = try await harness.company()
    var ids: [String] = []
    for index in 0..<7 {
      ids.append(try await company.make("/v1/groups", #"{"id":"g\#(index)","name":"G"}"#))
    }
    for limit in [1, 2, 3, 6, 7, 8, 500] {
      var (found, cursor): ([String], String?) = ([], nil)
      repeat {
        let query = cursor.map { "&cursor=\($0)" } ?? ""
        let page = try await harness.send(.get, "/v1/groups?limit=\(limit)\(query)", token: company.owner)
          .json(Listed.self)
        #expect(page.items.count <= limit)
        found += page.items.map(\.id)
        cursor = page.next
      } while cursor != nil
      #expect(found == ids)
    }
    for query in ["limit=0", "limit=501", "limit=x", "cursor=x", "cursor=LTE", "limit=1&limit=2"] {
      #expect(try await harness.send(.get, "/v1/groups?\(query)", token: company.owner).status == 422)
    }
  }

  @Test func `a request with a key makes one thing, however often it is sent`() async throws {
    let harness = try Harness()
    let (company, other) = (try await harness.company(), try await harness.company("Other"))
    let body = #"{"name":"ci","role":"auditor","expiresIn":3600}"#
    func send(
      _ key: String, _ body: String, token: String, _ path: String = "/v1/tokens"
    ) async throws -> Reply {
      try await harness.send(.post, path, token: token, headers: [.idempotencyKey: key], json: body)
    }
    let first = try await send("k1", body, token: company.owner)
    #expect(first.status == 201)
    let again = try await send("k1", body, token: company.owner)
    #expect(again.body == first.body && again.status == 201)
    let reused = try await send("k1", body.replacing("ci", with: "cd"), token: company.owner)
    #expect(reused.status == 422 && reused.problem == "idempotency-key-reused")
    // Another caller, another route and another company are other requests.
    #expect(try await send("k1", body, token: other.owner).body != first.body)
    #expect(try await send("k1", #"{"id":"g","name":"G"}"#, token: company.owner, "/v1/groups").status == 201)
    // A refusal is not kept: what is put right may be sent with the same key.
    #expect(try await send("k2", #"{"id":"g","name":"G"}"#, token: company.owner, "/v1/groups").status == 409)
    #expect(try await send("k2", #"{"id":"h","name":"G"}"#, token: company.owner, "/v1/groups").status == 201)
    // The answer held a secret, and no file does.
    struct Made: Decodable { let token: String }
    let secret = try first.json(Made.self).token
    #expect(SecretsTests.contain(Array(secret.utf8), try SecretsTests.files(harness)).isEmpty)
    for key in ["", String(repeating: "k", count: 201), "a b"] {
      #expect(try await send(key, body, token: company.owner).status == 400)
    }
    harness.time.advance(KeptRequest.lifetime)
    #expect(try await send("k1", body, token: company.owner).body != first.body)
    let statuses = try await withThrowingTaskGroup(of: [UInt8].self) { group in
      for _ in 0..<6 { group.addTask { try await send("k3", body, token: company.owner).body } }
      return try await group.reduce(into: Set<[UInt8]>()) { $0.insert($1) }
    }
    #expect(statuses.count == 1)
  }

  @Test func `a draft holds nothing until it is published, and then whole`() async throws {
    let harness = try Harness()
    let company = try await harness.company()
    let content = """
      {"rules":[\(Self.rule)],"classifications":[{"id":"c","name":"C"}],"fileTypes":[],\
      "settings":{"ownerActions":["view"],"allowFilteredTier":true},"grace":{"warnAfter":60,"blockAfter":120}}
      """
    let id = try await company.make("/v1/drafts", #"{"note":"Quarter end","content":\#(content)}"#)
    #expect(try await company.policy().rules.isEmpty)
    let question = #"{"requests":[{"action":"view"},{"action":"print"}],"draft":"\#(id)"}"#
    let simulated = try await harness.send(.post, "/v1/policy:simulate", token: company.auditor, json: question)
    #expect(simulated.status == 200)
    #expect(String(decoding: simulated.body, as: UTF8.self).contains(#""rules":["no-print"]"#))
    let headers: HTTPFields = [.ifMatch: try await company.tag("/v1/drafts/\(id)")]
    func publish() async throws -> Int {
      try await harness.send(.post, "/v1/drafts/\(id)/publish", token: company.owner, headers: headers).status
    }
    // Somebody else changed the policy meanwhile: publishing would take that back.
    _ = try await company.add()
    #expect(try await publish() == 409)
    let fresh = try await company.make("/v1/drafts", #"{"content":\#(content)}"#)
    let published = try await harness.send(
      .post, "/v1/drafts/\(fresh)/publish", token: company.owner,
      headers: [.ifMatch: try await company.tag("/v1/drafts/\(fresh)")])
    #expect(published.status == 200)
    let policy = try await company.policy()
    #expect(policy.rules.map(\.id) == ["no-print"] && policy.grace.blockAfter == 120)
    #expect(policy.settings.allowFilteredTier && policy.classifications.map(\.id) == ["c"])
    #expect(policy.apps.count == 1)
    #expect(try await harness.send(.get, "/v1/drafts/\(fresh)", token: company.owner).status == 404)
    let bad = content.replacing(#""effect":"forbid""#, with: #""effect":"forbid","classifications":["none"]"#)
    #expect(
      try await harness.send(.post, "/v1/drafts", token: company.owner, json: #"{"content":\#(bad)}"#).status == 422)
  }

  @Test func `a simulation decides as a device does`() async throws {
    struct Simulation: Decodable {
      struct Answer: Decodable {
        let isPermitted: Bool
        let reason: String
        let rules: [String]
      }
      let revision: Int64
      let decisions: [Answer]
    }
    let harness = try Harness()
    let company = try await harness.company()
    let key = Base64URL.encode(SigningKey().verifyingKey.bytes)
    let id = try await company.make("/v1/apps", Company.app(more: #","teamKey":"\#(key)""#))
    _ = try await AppTests.decide(company, id, "approve")
    let app =
      #""app":{"bundleId":"com.acme.editor","teamId":"ACME","teamKey":"\#(key)","version":"1","tier":"mediated"}"#
    let body = """
      {"requests":[{\(app),"action":"openIn","file":{"extension":".DOCX"}},
        {\(app),"action":"openIn","file":{"extension":"docx","content":"application/zip"}},
        {\(app),"action":"edit","file":{"extension":"docx"}},
        {"action":"saveCopy"},{"action":"import"},{"action":"import","policyAge":9999999}]}
      """
    let reply = try await harness.send(.post, "/v1/policy:simulate", token: company.owner, json: body)
    let answers = try reply.json(Simulation.self).decisions
    #expect(
      answers.map(\.reason) == [
        "permitted", "contentDisagrees", "notPermitted", "ownerActionNotAllowed", "permitted", "graceEnded",
      ])
    #expect(answers[0].rules == ["app:\(id)"])
    // The same question of the first revision.
    let earlier = body.replacing(#"{"requests""#, with: #"{"revision":1,"requests""#)
    let before = try await harness.send(.post, "/v1/policy:simulate", token: company.owner, json: earlier)
    #expect(try before.json(Simulation.self).decisions[0].reason == "appNotApproved")
    #expect(try await harness.current(company.tenant).number == 2)
  }

  @Test func `an earlier revision comes back as a new one`() async throws {
    let harness = try Harness()
    let company = try await harness.company()
    _ = try await company.add("a")
    _ = try await company.make("/v1/rules", Self.rule)
    let wanted = try await company.policy()
    let item = try await company.add("b")
    _ = try await harness.send(.delete, "/items/\(item.id)", token: company.owner)
    let tag = try await company.tag("/v1/rules/no-print")
    _ = try await harness.send(.delete, "/v1/rules/no-print", token: company.owner, headers: [.ifMatch: tag])
    let path = "/v1/revisions/\(wanted.revision)/restore"
    #expect(try await harness.send(.post, path, token: company.owner).status == 428)
    let headers: HTTPFields = [.ifMatch: try await company.tag("/v1/policy")]
    #expect(try await harness.send(.post, path, token: company.owner, headers: headers).status == 200)
    let policy = try await company.policy()
    #expect(policy.rules == wanted.rules && policy.apps == wanted.apps && policy.settings == wanted.settings)
    #expect(policy.revision == 7)
    _ = try await RevisionTests.verifyChain(company)
    #expect(try await harness.send(.get, "/v1/revisions/99", token: company.owner).status == 404)
  }

  @Test func `a cursor is for its list and its company, and tells nothing`() async throws {
    let harness = try Harness()
    let (company, other) = (try await harness.company(), try await harness.company("Other"))
    struct Names: Decodable {
      struct Named: Decodable { let id: String }
      let items: [Named]
      let next: String?
    }
    func page(_ path: String, _ token: String) async throws -> Reply {
      try await harness.send(.get, path, token: token)
    }
    for caller in [company, other] {
      for path in ["/v1/classifications", "/v1/groups"] {
        for index in 0..<3 {
          let made = try await harness.send(
            .post, path, token: caller.owner, json: #"{"id":"c\#(index)","name":"n"}"#)
          #expect(made.status == 201)
        }
      }
    }
    let (first, second): (Names, Names) = (
      try await page("/v1/classifications?limit=1", company.owner).json(),
      try await page("/v1/classifications?limit=1", company.owner).json()
    )
    let cursor = try #require(first.next)
    // The same place has another text each time.
    #expect(cursor != second.next)
    let rest: Names = try await page("/v1/classifications?cursor=\(cursor)", company.owner).json()
    #expect(rest.items.map(\.id) == ["c1", "c2"])
    #expect(try await page("/v1/groups?cursor=\(cursor)", company.owner).status == 422)
    #expect(try await page("/v1/classifications?cursor=\(cursor)", other.owner).status == 422)
    let altered = (cursor.first == "A" ? "B" : "A") + cursor.dropFirst()
    #expect(try await page("/v1/classifications?cursor=\(altered)", company.owner).status == 422)
  }
}
