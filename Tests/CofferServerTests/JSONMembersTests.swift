import Foundation
import HTTPTypes
import Testing

@testable import CofferServer

/// What two readers of one JSON would take differently.
@Suite struct JSONMembersTests {
  @Test(arguments: [
    #"{"a":1,"a":2}"#, #"{"a":1,"\u0061":2}"#, #"[{"x":{"b":[],"b":[]}}]"#, #"{"a":{"b":1},"c":0,"a":{"b":1}}"#,
    "{\"caf\u{e9}\":1,\"cafe\u{301}\":2}", #"{"a\"":1,"a\"":2}"#,
  ])
  func `a name that is there twice is found`(json: String) {
    #expect(!JSONMembers.areUnique(in: Array(json.utf8)))
  }

  @Test(arguments: [
    "{}", "[]", #""a""#, #"{"a":{"a":{"a":1}},"b":["a","a",{"a":1},{"a":1}]}"#, #"{"a":"\"a\":1","b":"{\"a\""}"#,
    #"{"\\":1,"\"":2}"#, #"[[],[],{"a":[]},{"a":[]}]"#, #"{"a":[1,2],"b":[3,{"a":4}],"c":"a"}"#,
  ])
  func `names in different objects, and texts, are none`(json: String) {
    #expect(JSONMembers.areUnique(in: Array(json.utf8)))
  }

  @Test func `nothing is nested without a bound`() {
    func nested(_ depth: Int) -> [UInt8] { Array(repeating: 91, count: depth) + Array(repeating: 93, count: depth) }
    #expect(JSONMembers.areUnique(in: nested(JSONMembers.maximumDepth)))
    #expect(!JSONMembers.areUnique(in: nested(JSONMembers.maximumDepth + 1)))
    #expect(!JSONMembers.areUnique(in: nested(1 << 20)))
  }

  @Test func `what ends in the middle ends the search`() {
    for json in [#"{"a"#, #"{"a\"#, #"{"a":1,"#, "{", "}", "]]]]", "\"", #"{"\ud800":1}"#] {
      _ = JSONMembers.areUnique(in: Array(json.utf8))
    }
  }

  @Test(arguments: [
    ("/items", #"{"name":"A","name":"B","bundleId":"b","teamId":"T","extensions":[],"actions":[]}"#),
    ("/v1/rules", #"{"id":"r","effect":"forbid","effect":"permit","conditions":[]}"#),
    ("/v1/rules", #"{"id":"r","effect":"permit","conditions":[{"kind":"group","group":"a","group":"b"}]}"#),
    ("/v1/tokens", #"{"name":"","role":"auditor","role":"owner","expiresIn":60}"#),
  ])
  func `a body with a member twice is refused, and changes nothing`(path: String, json: String) async throws {
    let harness = try Harness()
    let company = try await harness.company()
    let before = try await harness.current(company.tenant).digest
    let reply = try await harness.send(.post, path, token: company.owner, json: json)
    #expect(reply.status == 400 && reply.problem == "malformed-request")
    #expect(try await harness.current(company.tenant).digest == before)
  }
}
