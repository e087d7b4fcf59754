import CofferAPI
import CofferCrypto
import CofferServerSQLite
import Foundation
import HTTPTypes
import Testing

@testable import CofferServer

/// What slows guessing down is not gone around, and locks nobody else out.
@Suite struct GuessingTests {
  private static func signIn(_ company: String, _ email: String, password: String = "wrong horse battery") -> String {
    #"{"company":"\#(company)","email":"\#(email)","password":"\#(password)"}"#
  }

  @Test func `no spelling of an account has tries of its own`() async throws {
    let harness = try Harness()
    let company = try await harness.company()
    let person = try await Person(company, email: "kim@example.com")
    func status(_ body: String) async throws -> Int {
      try await harness.send(.post, "/v1/session", json: body).status
    }
    for index in 0..<SignInLimiter.attemptsForAccount {
      let email = index.isMultiple(of: 2) ? person.email : person.email.uppercased()
      #expect(try await status(Self.signIn("Acme", email)) == 401)
    }
    #expect(try await status(Self.signIn("Acme", "Kim@Example.com")) == 429)
    for (name, email) in [(#"Acme\u0000N"#, person.email), ("Acme", #"kim@example.com\u0000"#)] {
      #expect(try await status(Self.signIn(name, email, password: Person.password)) == 400)
    }
    // The Kelvin sign is no K to the store, and therefore none here.
    for _ in 0..<SignInLimiter.attemptsForAccount {
      #expect(try await status(Self.signIn("Acme", "\u{212A}im@example.com")) == 401)
    }
    #expect(try await status(Self.signIn("Acme", "\u{212A}im@example.com")) == 429)
  }

  @Test(arguments: [#"a\u0000b"#, #"\\\u0000"#, "a\0b", #"\u0000"#])
  func `a text with a NUL is refused wherever it is`(text: String) async throws {
    let harness = try Harness()
    let company = try await harness.company()
    let token = try await company.enroll().token()
    let body = #"{"entries":[{"number":1,"entry":"\#(text)"}]}"#
    #expect(try await harness.send(.post, "/v1/device/decisions", token: token, json: body).status == 400)
    let rule = #"{"id":"r","effect":"permit","comment":"\#(text)"}"#
    #expect(try await harness.send(.post, "/v1/rules", token: company.owner, json: rule).status == 400)
  }

  @Test func `an escaped backslash before u0000 is no NUL, and a form has none either`() async throws {
    let harness = try Harness()
    let company = try await harness.company()
    let token = try await company.enroll().token()
    let body = #"{"entries":[{"number":1,"entry":"\\u0000"}]}"#
    #expect(try await harness.send(.post, "/v1/device/decisions", token: token, json: body).status == 200)
    let form = try await harness.send(
      .post, "/v1/device/token", json: "grant_type=a%00b&assertion=x", type: "application/x-www-form-urlencoded")
    #expect(form.problem == "malformed-request")
    let utf16 = Array("{}".utf16).flatMap { [UInt8(truncatingIfNeeded: $0), UInt8($0 >> 8)] }
    let wide = try await harness.send(
      .post, "/v1/enrollments", token: company.owner, json: String(decoding: utf16, as: UTF8.self))
    #expect(wide.status == 400)
  }

  @Test func `the store takes no text with a NUL for another`() async throws {
    let harness = try Harness()
    _ = try await harness.company()
    await #expect(throws: ServerError.self) { try await harness.store.read { try $0.tenant(name: "Acme\0N") } }
    #expect(try await harness.store.read { try $0.tenant(name: "Acme") } != nil)
  }

  @Test func `wrong links lock nobody out, and neither does a proxy on this machine`() async throws {
    let harness = try Harness()
    let company = try await harness.company()
    let person = try await Person(company)
    for _ in 0...SignInLimiter.attemptsFromAddress {
      let body = #"{"token":"coffer_invitation_junk","password":"a password of mine"}"#
      #expect(try await harness.send(.post, "/v1/setup", json: body).status == 404)
    }
    let body = Self.signIn("Acme", person.email, password: Person.password)
    #expect(try await harness.send(.post, "/v1/session", json: body).status == 201)
    let limiter = SignInLimiter()
    for address in ["127.0.0.1", "::1"] {
      for index in 0...SignInLimiter.attemptsFromAddress {
        #expect(limiter.begin(account: "\(address) \(index)", address: address, now: 100) == nil)
      }
      for _ in 1..<SignInLimiter.attemptsForAccount {
        #expect(limiter.begin(account: "\(address) 0", address: address, now: 100) == nil)
      }
      #expect(limiter.begin(account: "\(address) 0", address: address, now: 100) != nil)
    }
  }

  @Test func `an address of IPv6 stands for its network, however it is written, and one of IPv4 for itself`() {
    for address in ["2001:db8::1", "2001:db8::2", "2001:db8:0:0:5::", "2001:db8:0:0:1:2:3:4", "2001:db8::5:6:7:8%2"] {
      #expect(SignInLimiter.network(of: address) == "2001:db8:0:0", "\(address)")
    }
    for address in ["2001:db8:0:1::1", "2001:db8:0:1:1:2:3:4"] {
      #expect(SignInLimiter.network(of: address) == "2001:db8:0:1", "\(address)")
    }
    #expect(SignInLimiter.network(of: "::5") == "0:0:0:0")
    #expect(SignInLimiter.network(of: "fe80::1%eth0") == "fe80:0:0:0")
    for address in ["192.0.2.7", "::ffff:192.0.2.7", "::FFFF:192.0.2.7"] {
      #expect(SignInLimiter.network(of: address) == "192.0.2.7", "\(address)")
    }
    #expect(LoopbackAddress.isLoopback("::ffff:127.0.0.1") && LoopbackAddress.isLoopback("::1"))
    #expect(!LoopbackAddress.isLoopback("::ffff:192.0.2.7") && !LoopbackAddress.isLoopback("2001:db8::1"))
  }
}
