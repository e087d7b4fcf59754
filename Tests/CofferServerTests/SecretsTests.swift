import CofferAPI
import CofferCrypto
import CofferPolicy
import CofferSystem
import CofferTestSupport
import Foundation
import Testing

@testable import CofferServer

/// What the data directory gives away to someone who copies it.
@Suite struct SecretsTests {
  /// Every byte of every file of the data directory.
  static func files(_ harness: Harness) throws -> [String: Data] {
    let names = try FileManager.default.contentsOfDirectory(atPath: harness.directory.path)
    return try Dictionary(
      uniqueKeysWithValues: names.map { name in
        (name, try Data(contentsOf: URL(fileURLWithPath: harness.directory.path + "/" + name)))
      })
  }

  static func contain(_ secret: [UInt8], _ files: [String: Data]) -> [String] {
    files.filter { $0.value.range(of: Data(secret)) != nil }.map(\.key).sorted()
  }

  @Test func `no secret stands in any file`() async throws {
    let harness = try Harness()
    let company = try await harness.company()
    let password = "correct horse battery staple"
    _ = try await harness.administration.createAdministrator(
      tenant: "Acme", email: "owner@example.com", password: Self.secret(password), costExponent: 14)
    let code = try await company.code()
    let device = try await company.enroll()
    let token = try await device.token()
    let sealing = KeySealing(serverKey: harness.directory.serverKey)
    let keys = company.tenant.keys
    let id = company.tenant.id
    let seeds = [
      try sealing.open(keys.sealedRoot, tenant: id, use: .root),
      try sealing.open(keys.sealedSigning, tenant: id, use: .signing),
    ].map { $0.seed.withUnsafeBytes { Array($0) } }
    let serverKey = harness.directory.serverKey.secretBytes.withUnsafeBytes { Array($0) }

    let files = try Self.files(harness)
    #expect(files.keys.contains("coffer.sqlite-wal"))
    var secrets = seeds
    secrets += [company.owner, token, code.secret, password].map { Array($0.utf8) }
    for secret in secrets {
      #expect(Self.contain(secret, files).isEmpty)
      #expect(Self.contain(Array(secret.hexadecimal.utf8), files).isEmpty)
      #expect(Self.contain(Array(Base64URL.encode(secret).utf8), files).isEmpty)
    }
    // The search finds what is there: sealed forms, a public key, the name; and the server key in its own file only.
    for stored in [keys.sealedRoot, keys.sealedSigning, keys.root.bytes, Array("owner@example.com".utf8)] {
      #expect(!Self.contain(stored, files).isEmpty)
    }
    #expect(Self.contain(serverKey, files) == ["server.key"])
  }

  static func secret(_ text: String) -> SecretBytes {
    Array(text.utf8).withUnsafeBytes { SecretBytes(copying: $0) }
  }

  @Test func `a sealed key opens for its company and its use only`() throws {
    let sealing = KeySealing(serverKey: SecretKey())
    let key = SigningKey()
    let sealed = try sealing.seal(key, tenant: "a", use: .root)
    #expect(try sealing.open(sealed, tenant: "a", use: .root).verifyingKey == key.verifyingKey)
    #expect(throws: CryptoError.notAuthentic) { try sealing.open(sealed, tenant: "b", use: .root) }
    #expect(throws: CryptoError.notAuthentic) { try sealing.open(sealed, tenant: "a", use: .signing) }
    #expect(throws: CryptoError.notAuthentic) {
      try KeySealing(serverKey: SecretKey()).open(sealed, tenant: "a", use: .root)
    }
    for index in sealed.indices {
      var altered = sealed
      altered[index] ^= 1
      #expect(throws: CryptoError.notAuthentic) { try sealing.open(altered, tenant: "a", use: .root) }
    }
  }

  @Test func `a password record knows its password only`() throws {
    let record = try PasswordRecord(Self.secret("correct horse"), costExponent: 14)
    let again = try PasswordRecord(Self.secret("correct horse"), costExponent: 14)
    #expect(record.commitment != again.commitment)
    #expect(try record.matches(Self.secret("correct horse")))
    for other in ["correct hors", "correct horse ", "Correct horse", ""] {
      #expect(try !record.matches(Self.secret(other)))
    }
  }

  @Test func `tokens are long, different and silent`() {
    let tokens = (0..<100).map { _ in BearerToken(.api) }
    #expect(Set(tokens.map(\.text)).count == 100)
    #expect(tokens.allSatisfy { $0.text.hasPrefix("coffer_api_") && $0.text.count == 11 + 64 })
    #expect("\(tokens[0])" == "<token>")
    #expect(String(reflecting: tokens[0]) == "<token>")
  }
}
