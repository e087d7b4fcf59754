import CofferCrypto
import CofferServerSQLite
import CofferSystem
import Foundation
import Testing

@testable import CofferServer

/// What the operator does to the store, and what is refused.
@Suite struct AdministrationTests {
  @Test func `a tenant is found by name and by id`() async throws {
    let harness = try Harness()
    let tenant = try await harness.administration.createTenant(name: "Acme")
    for name in ["Acme", tenant.id] {
      #expect(try await harness.administration.createToken(tenant: name, role: .auditor).token.tenant == tenant.id)
    }
    for name in ["acme", "", "Acme ", "nobody"] {
      await #expect(throws: ServerError.noSuchTenant) {
        try await harness.administration.createToken(tenant: name, role: .auditor)
      }
      await #expect(throws: ServerError.noSuchTenant) {
        try await harness.administration.createEnrollment(tenant: name)
      }
    }
  }

  @Test func `a tenant's name is there once`() async throws {
    let harness = try Harness()
    let first = try await harness.administration.createTenant(name: "Acme")
    await #expect(throws: ServerError.tenantExists) { try await harness.administration.createTenant(name: "Acme") }
    #expect(try await harness.store.read { try $0.tenant(name: "Acme")?.id } == first.id)
    for name in ["", " Acme", "Acme ", "a\nb", String(repeating: "x", count: 201)] {
      await #expect(throws: ServerError.self) { try await harness.administration.createTenant(name: name) }
    }
  }

  @Test func `each tenant has keys of its own`() async throws {
    let harness = try Harness()
    let (first, second) = (
      try await harness.administration.createTenant(name: "A").keys,
      try await harness.administration.createTenant(name: "B").keys
    )
    #expect(Set([first.root, first.signing, second.root, second.signing]).count == 4)
    #expect(first.epoch == 1)
  }

  @Test func `an administrator is kept with a record of the password`() async throws {
    let harness = try Harness()
    let tenant = try await harness.administration.createTenant(name: "Acme")
    func create(_ email: String, _ password: String, tenant: String = "Acme") async throws -> Administrator {
      try await harness.administration.createAdministrator(
        tenant: tenant, email: email, role: .editor, password: SecretsTests.secret(password), costExponent: 14)
    }
    let made = try await create("Owner@example.com", "correct horse")
    let stored = try #require(
      try await harness.store.read { try $0.administrator(tenant: tenant.id, email: "owner@EXAMPLE.com") })
    #expect(stored.id == made.id)
    #expect(stored.role == .editor)
    #expect(try stored.password.matches(SecretsTests.secret("correct horse")))
    await #expect(throws: ServerError.administratorExists) { try await create("owner@example.com", "correct horse") }
    for email in ["", "a", "@b", "a@", "a@b@c", "a b@c", "a\u{7}@b", String(repeating: "a", count: 260) + "@b"] {
      await #expect(throws: ServerError.self) { try await create(email, "correct horse") }
    }
    for password in ["", "elevenbytes", String(repeating: "x", count: 1025)] {
      await #expect(throws: ServerError.self) { try await create("b@example.com", password) }
    }
    await #expect(throws: ServerError.noSuchTenant) {
      try await create("b@example.com", "correct horse", tenant: "nobody")
    }
  }

  @Test(arguments: [Int64.min, -1, 0, 59, 366 * 86_400 + 1, Int64.max] as [Int64])
  func `a life that is too short or too long is refused`(lifetime: Int64) async throws {
    let harness = try Harness()
    _ = try await harness.administration.createTenant(name: "Acme")
    await #expect(throws: ServerError.self) {
      try await harness.administration.createToken(tenant: "Acme", role: .owner, lifetime: lifetime)
    }
    await #expect(throws: ServerError.self) {
      try await harness.administration.createEnrollment(tenant: "Acme", lifetime: lifetime)
    }
  }

  @Test(arguments: [
    ("127.0.0.1", true), ("127.8.9.1", true), ("::1", true), ("localhost", true), ("LOCALHOST", true),
    ("0.0.0.0", false), ("::", false), ("192.168.1.1", false), ("127.0.0.1.example.com", false),
    ("localhost.example.com", false), ("::ffff:10.0.0.1", false), ("example.com", false), ("", false),
  ])
  func `plain HTTP is for loopback addresses`(host: String, isAllowed: Bool) throws {
    if isAllowed {
      _ = try ServerOptions(host: host, port: 0)
    } else {
      #expect(throws: ServerError.plainHTTPBeyondLoopback) { try ServerOptions(host: host, port: 0) }
    }
    _ = try ServerOptions(host: host, port: 0, tls: .init(certificate: "c", key: "k"))
  }
}
