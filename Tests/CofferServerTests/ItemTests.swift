import CofferAPI
import CofferCrypto
import CofferPolicy
import Foundation
import HTTPTypes
import Hummingbird
import NIOCore
import Synchronization
import Testing

@testable import CofferServer

/// The resource `/items`: what it accepts, what it refuses and how it says so.
@Suite struct ItemTests {
  @Test func `an item is made, read, changed and deleted`() async throws {
    let harness = try Harness()
    let company = try await harness.company()
    let key = Base64URL.encode(SigningKey().verifyingKey.bytes)
    let made = try await harness.send(
      .post, "/items", token: company.editor,
      json: """
        {"id":"mine","name":"Ädit","bundleId":"com.acme.editor","teamId":"ACME","teamKey":"\(key)",
         "extensions":[".PDF","docx","pdf"],"actions":["view","openIn","view"]}
        """)
    #expect(made.status == 201)
    let item = try made.json(Item.self)
    #expect(UUID(uuidString: item.id) != nil)
    #expect(item.name == "Ädit")
    #expect(item.teamKey == key)
    #expect(item.extensions.sorted() == ["docx", "pdf"])
    #expect(Set(item.actions) == ["view", "openIn"] && item.actions.count == 2)
    #expect(made.headers[.location] == "/items/\(item.id)")

    let read = try await harness.send(.get, "/items/\(item.id)", token: company.auditor)
    #expect(read.body == made.body)
    #expect(read.headers[.eTag] == made.headers[.eTag])
    #expect(try await company.policy().apps.map(\.tier) == [.mediated])

    let changed = try await harness.send(
      .put, "/items/\(item.id.uppercased())", token: company.editor,
      json: #"{"id":"\#(item.id)",\#(Company.item(name: "New").dropFirst())"#)
    #expect(changed.status == 200)
    #expect(try changed.json(Item.self).name == "New")
    #expect(try changed.json(Item.self).teamKey == nil)
    #expect(changed.headers[.eTag] != made.headers[.eTag])
    #expect(try await company.policy().apps.map(\.tier) == [.filtered])

    #expect(try await harness.send(.delete, "/items/\(item.id)", token: company.editor).status == 204)
    #expect(try await harness.send(.delete, "/items/\(item.id)", token: company.editor).status == 404)
    #expect(try await harness.send(.get, "/items", token: company.editor).body == Array("[]".utf8))
    #expect(try await company.policy().apps.isEmpty)
  }

  static let longName = String(repeating: "x", count: 201)

  /// A body, and the field that the answer must name.
  static let invalid: [(body: String, field: String)] = [
    ("{}", "name"),
    (Company.item(name: ""), "name"),
    (Company.item(name: longName), "name"),
    (Company.item(name: #"line\nbreak"#), "name"),
    (Company.item(name: #"\u202Egnp.exe"#), "name"),
    (Company.item(""), "bundleId"),
    (Company.item("com acme"), "bundleId"),
    (Company.item("com.äcme"), "bundleId"),
    (Company.item(longName), "bundleId"),
    (Company.item().replacing(#""ACME""#, with: #""AC/ME""#), "teamId"),
    (Company.item().replacing(#""ACME""#, with: "7"), "teamId"),
    (Company.item().replacing(#""teamId":"ACME","#, with: ""), "teamId"),
    (Company.item(extensions: #"["."]"#), "extensions"),
    (Company.item(extensions: #"["p/df"]"#), "extensions"),
    (Company.item(extensions: #"["..pdf"]"#), "extensions"),
    (Company.item(extensions: #""pdf""#), "extensions"),
    (Company.item(extensions: "[1]"), "extensions[0]"),
    (Company.item().replacing(#""edit""#, with: #""delete""#), "actions"),
    (Company.item().replacing(#","actions":["openIn","edit"]"#, with: ""), "actions"),
    (Company.item().replacing(#""ACME""#, with: #""ACME","teamKey":"AAAA""#), "teamKey"),
    (Company.item().replacing(#""ACME""#, with: #""ACME","teamKey":7"#), "teamKey"),
    (Company.item().replacing(#""ACME""#, with: #""ACME","teamkey":"x""#), "teamkey"),
    (Company.item().replacing(#""ACME""#, with: #""ACME","tier":"enforced""#), "tier"),
  ]

  @Test(arguments: invalid)
  func `an invalid field is named and nothing changes`(body: String, field: String) async throws {
    struct Document: Decodable {
      struct Entry: Decodable { let field: String }
      let errors: [Entry]
    }
    let harness = try Harness()
    let company = try await harness.company()
    let item = try await company.add("com.acme.other")
    let before = try await harness.current(company.tenant)
    for (method, path) in [(HTTPRequest.Method.post, "/items"), (.put, "/items/\(item.id)")] {
      let reply = try await harness.send(method, path, token: company.owner, json: body)
      #expect(reply.status == 422)
      #expect(reply.problem == "invalid-fields")
      #expect(try reply.json(Document.self).errors.map(\.field) == [field])
    }
    #expect(try await harness.current(company.tenant).digest == before.digest)
  }

  static let malformed: [String] = [
    "", "{", "null", "[]", "7", #""text""#, "{\"name\":\"\u{0}", Company.item() + "}",
    String(repeating: "[", count: 30_000), String(repeating: #"{"a":"#, count: 10_000),
    #"{"name":"# + String(repeating: "[", count: 20_000),
  ]

  @Test(arguments: malformed)
  func `a body that is no JSON object is refused`(body: String) async throws {
    let harness = try Harness()
    let company = try await harness.company()
    let reply = try await harness.send(.post, "/items", token: company.owner, json: body)
    #expect(reply.status == 400)
    #expect(reply.problem == "malformed-request")
    #expect(try await harness.current(company.tenant).number == 1)
  }

  @Test func `invalid UTF-8 is refused`() async throws {
    let harness = try Harness()
    let company = try await harness.company()
    let bytes = Array(#"{"name":""#.utf8) + [0xFF, 0xFE] + Array(#""}"#.utf8)
    let reply = try await harness.send(
      .post, "/items", token: company.owner, headers: [.contentType: "application/json"],
      body: RequestBody(buffer: ByteBuffer(bytes: bytes)))
    #expect(reply.status == 400)
  }

  /// Yields chunks for as long as it is asked, and counts them.
  struct Endless: AsyncSequence, Sendable {
    final class Count: Sendable {
      private let value = Mutex(0)
      var chunks: Int { value.withLock { $0 } }
      func add() { value.withLock { $0 += 1 } }
    }
    struct Iterator: AsyncIteratorProtocol {
      let count: Count
      mutating func next() async -> ByteBuffer? {
        count.add()
        return ByteBuffer(repeating: UInt8(ascii: "x"), count: 1 << 10)
      }
    }
    let count = Count()
    func makeAsyncIterator() -> Iterator { Iterator(count: count) }
  }

  @Test(arguments: ["/items", "/v1/settings", "/v1/enroll", "/v1/device/token"])
  func `an endless body is cut at the limit`(path: String) async throws {
    let harness = try Harness()
    let company = try await harness.company()
    let body = Endless()
    let type = path == "/v1/device/token" ? "application/x-www-form-urlencoded" : "application/json"
    let reply = try await harness.send(
      path == "/v1/settings" ? .put : .post, path, token: company.owner, headers: [.contentType: type],
      body: RequestBody(asyncSequence: body))
    #expect(reply.status == 413)
    #expect(reply.problem == "body-too-large")
    #expect((1...65).contains(body.count.chunks))
  }

  @Test func `a body that announces too much is not read at all`() async throws {
    let harness = try Harness()
    let company = try await harness.company()
    let body = Endless()
    let reply = try await harness.send(
      .post, "/items", token: company.owner, headers: [.contentType: "application/json", .contentLength: "65537"],
      body: RequestBody(asyncSequence: body))
    #expect(reply.status == 413)
    #expect(body.count.chunks == 0)
  }

  @Test func `a body of exactly the limit is read`() async throws {
    let harness = try Harness()
    let company = try await harness.company()
    let item = Company.item()
    let padding = String(repeating: " ", count: 65_536 - item.utf8.count)
    #expect(try await harness.send(.post, "/items", token: company.owner, json: item + padding).status == 201)
    let over = try await harness.send(.post, "/items", token: company.owner, json: item + padding + " ")
    #expect(over.status == 413)
  }

  @Test(arguments: [
    ("application/json", 201), ("application/json; charset=utf-8", 201), ("APPLICATION/JSON;charset=UTF-8", 201),
    ("text/plain", 415), ("application/x-www-form-urlencoded", 415), ("application/json; charset=utf-16", 415),
    ("application/*", 415), ("json", 415), ("", 415),
  ])
  func `the content type decides`(type: String, status: Int) async throws {
    let harness = try Harness()
    let company = try await harness.company()
    let reply = try await harness.send(
      .post, "/items", token: company.owner, headers: [.contentType: type], json: Company.item())
    #expect(reply.status == status)
    #expect(reply.problem == (status == 415 ? "unsupported-media-type" : nil))
  }

  @Test(arguments: [
    ("*/*", 200), ("application/json", 200), ("application/*;q=0.5", 200), ("text/html, */*;q=0.1", 200),
    ("text/html", 406), ("application/json;q=0", 406), ("application/json;q=0, */*", 406), ("", 406),
  ])
  func `the accepted types decide`(accept: String, status: Int) async throws {
    let harness = try Harness()
    let company = try await harness.company()
    let reply = try await harness.send(.get, "/items", token: company.owner, headers: [.accept: accept])
    #expect(reply.status == status)
    #expect(reply.problem == (status == 406 ? "not-acceptable" : nil))
  }

  @Test func `other methods are refused and named, other paths are absent`() async throws {
    let harness = try Harness()
    let company = try await harness.company()
    for method in [HTTPRequest.Method.patch, .put, .delete, .options] {
      let reply = try await harness.send(method, "/items", token: company.owner)
      #expect(reply.status == 405)
      #expect(reply.headers[.allow] == "GET, HEAD, POST")
    }
    let one = try await harness.send(.post, "/items/\(UUID().uuidString)", token: company.owner)
    #expect(one.status == 405)
    #expect(one.headers[.allow] == "DELETE, GET, HEAD, PUT")
    for path in ["/item", "/items/a/b", "/v1", "/v1/items", "/items%2F", "/../items", "/v1/device"] {
      #expect(try await harness.send(.get, path, token: company.owner).status == 404)
    }
    for id in ["1", "..", "%00", "' OR 1=1 --", String(repeating: "a", count: 5000)] {
      let path = "/items/" + (id.addingPercentEncoding(withAllowedCharacters: .alphanumerics) ?? id)
      let reply = try await harness.send(.get, path, token: company.owner)
      #expect(reply.status == 404)
    }
  }

  @Test func `HEAD shows the head of GET`() async throws {
    let harness = try Harness()
    let company = try await harness.company()
    let item = try await company.add()
    let get = try await harness.send(.get, "/items/\(item.id)", token: company.owner)
    let head = try await harness.send(.head, "/items/\(item.id)", token: company.owner)
    #expect(head.status == 200)
    #expect(head.headers == get.headers)
    #expect(head.body.isEmpty)
    let refused = try await harness.send(.head, "/items")
    #expect(refused.status == 401)
    #expect(refused.body.isEmpty)
  }

  @Test func `the same bundle id of the same team is there once`() async throws {
    let harness = try Harness()
    let company = try await harness.company()
    let (first, second) = (try await company.add("a"), try await company.add("b"))
    let before = try await harness.current(company.tenant)
    let again = try await harness.send(.post, "/items", token: company.owner, json: Company.item("a"))
    #expect(again.status == 409)
    #expect(again.problem == "already-exists")
    let moved = try await harness.send(
      .put, "/items/\(second.id)", token: company.owner, json: Company.item("a"))
    #expect(moved.status == 409)
    #expect(try await harness.current(company.tenant).digest == before.digest)
    let listed = try await harness.send(.get, "/items", token: company.owner).json([Item].self)
    #expect(listed == [first, second])
    // Another team's app of this name is another app; and a name that became free may be taken.
    let otherTeam = Company.item("a").replacing("ACME", with: "EMCA")
    #expect(try await harness.send(.post, "/items", token: company.owner, json: otherTeam).status == 201)
    #expect(try await harness.send(.delete, "/items/\(first.id)", token: company.owner).status == 204)
    let free = try await harness.send(.put, "/items/\(second.id)", token: company.owner, json: Company.item("a"))
    #expect(free.status == 200)
  }

  @Test(arguments: [HTTPRequest.Method.put, .delete])
  func `If-Match holds a change to what the client saw`(method: HTTPRequest.Method) async throws {
    let harness = try Harness()
    let company = try await harness.company()
    let item = try await company.add()
    let path = "/items/\(item.id)"
    let tag = try #require(try await harness.send(.get, path, token: company.owner).headers[.eTag])
    func change(_ match: String) async throws -> Int {
      let body = method == .put ? Company.item(name: "Changed") : nil
      return try await harness.send(method, path, token: company.owner, headers: [.ifMatch: match], json: body).status
    }
    let before = try await harness.current(company.tenant)
    for stale in ["\"0\"", "W/\(tag)", String(tag.dropFirst().dropLast()), "\"a\", \"b\"", ""] {
      #expect(try await change(stale) == 412)
    }
    #expect(try await harness.current(company.tenant).digest == before.digest)
    #expect(try await change("\"0\" , \(tag)") == (method == .put ? 200 : 204))
    // Now it is another, or none.
    #expect(try await change(tag) == (method == .put ? 412 : 404))
    if method == .put { #expect(try await change("*") == 200) }
  }

  @Test func `the path's id wins over the body's`() async throws {
    let harness = try Harness()
    let company = try await harness.company()
    let (first, second) = (try await company.add("a"), try await company.add("b"))
    let body = #"{"id":"\#(second.id)",\#(Company.item("c").dropFirst())"#
    let reply = try await harness.send(.put, "/items/\(first.id)", token: company.owner, json: body)
    #expect(reply.status == 422)
    #expect(try await harness.send(.get, "/items", token: company.owner).json([Item].self) == [first, second])
  }
}
