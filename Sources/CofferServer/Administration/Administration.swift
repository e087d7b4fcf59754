public import CofferAPI
public import CofferCrypto
internal import CofferPolicy
public import CofferSystem
internal import Foundation

/// What the server's operator does to the store itself: companies, their administrators, tokens and enrolment codes.
public struct Administration: Sendable {
  private let store: any PolicyStore
  private let publisher: Publisher
  private let time: any TimeSource

  public init(store: any PolicyStore, serverKey: SecretKey, time: any TimeSource = SystemTime()) {
    self.store = store
    self.time = time
    publisher = Publisher(sealing: KeySealing(serverKey: serverKey), time: time)
  }

  /// Makes a company with its keys, its keyset and the first revision of its policy.
  ///
  /// Throws `ServerError.tenantExists`, `.invalid` for a name that is no name, and `StoreError`.
  public func createTenant(name: String) async throws -> Tenant {
    guard PolicyText.isName(name), name.first != " ", name.last != " " else {
      throw ServerError.invalid("a tenant's name has 1 to 200 bytes and no control characters")
    }
    let id = Self.newID()
    let tenant = Tenant(
      id: id, name: name, keys: try publisher.newKeys(tenant: id), settings: .initial, createdAt: now)
    try await store.write { transaction in
      guard try transaction.insert(tenant) else { throw ServerError.tenantExists }
      _ = try publisher.publish(tenant, in: transaction)
    }
    return tenant
  }

  /// Adds an administrator. `tenant` is a name or an id.
  ///
  /// Throws `ServerError.noSuchTenant`, `.administratorExists`, `.invalid`, and `StoreError`.
  public func createAdministrator(
    tenant: String, email: String, role: Role = .owner, password: SecretBytes,
    costExponent: Int = PasswordRecord.costExponent
  ) async throws -> Administrator {
    guard Self.isAddress(email) else { throw ServerError.invalid("this is not an e-mail address") }
    guard Self.passwordByteCounts.contains(password.count) else {
      throw ServerError.invalid("a password has 12 to 1024 bytes")
    }
    let record = try PasswordRecord(password, costExponent: costExponent)
    let (id, now) = (Self.newID(), now)
    return try await store.write { transaction in
      let administrator = Administrator(
        id: id, tenant: try Self.find(tenant, in: transaction).id, email: email, role: role, password: record,
        createdAt: now)
      guard try transaction.insert(administrator) else { throw ServerError.administratorExists }
      return administrator
    }
  }

  /// Makes an API token that expires after `lifetime` seconds. The token's text cannot be had again.
  ///
  /// Throws `ServerError.noSuchTenant`, `.invalid`, and `StoreError`.
  public func createToken(
    tenant: String, role: Role, lifetime: Int64 = 90 * 86_400
  ) async throws -> (secret: BearerToken, token: APIToken) {
    guard (60...366 * 86_400).contains(lifetime) else {
      throw ServerError.invalid("a token lives from one minute to 366 days")
    }
    let (id, secret, now) = (Self.newID(), BearerToken(.api), now)
    let token = try await store.write { transaction in
      let token = APIToken(
        id: id, tenant: try Self.find(tenant, in: transaction).id, role: role, createdAt: now,
        expiresAt: now + lifetime)
      try transaction.insert(token, hash: secret.hash)
      return token
    }
    return (secret, token)
  }

  /// Makes a code by which one device can join within `lifetime` seconds. It cannot be had again.
  ///
  /// Throws `ServerError.noSuchTenant`, `.invalid`, and `StoreError`.
  public func createEnrollment(
    tenant: String, lifetime: Int64 = 86_400
  ) async throws -> (code: EnrollmentCode, enrollment: Enrollment) {
    guard (60...30 * 86_400).contains(lifetime) else {
      throw ServerError.invalid("an enrolment code lives from one minute to 30 days")
    }
    let (id, secret, now) = (Self.newID(), Randomness.bytes(EnrollmentCode.secretByteCount), now)
    return try await store.write { transaction in
      let found = try Self.find(tenant, in: transaction)
      let enrollment = Enrollment(id: id, tenant: found.id, createdAt: now, expiresAt: now + lifetime)
      let code = EnrollmentCode(secret: secret, fingerprint: found.keys.root.fingerprint)
      try transaction.insert(enrollment, hash: Digest.sha256(code.secret.utf8))
      return (code, enrollment)
    }
  }

  private var now: Int64 { time.now().seconds }

  private static let passwordByteCounts = 12...1024

  private static func newID() -> String { UUID().uuidString.lowercased() }

  private static func find(_ tenant: String, in transaction: any StoreTransaction) throws -> Tenant {
    guard let found = try transaction.tenant(id: tenant) ?? transaction.tenant(name: tenant) else {
      throw ServerError.noSuchTenant
    }
    return found
  }

  /// Something before and after one `@`. Only a letter that arrives proves an address.
  private static func isAddress(_ text: String) -> Bool {
    let parts = text.utf8.split(separator: UInt8(ascii: "@"), omittingEmptySubsequences: false)
    return parts.count == 2 && parts.allSatisfy { !$0.isEmpty } && text.utf8.count <= 254
      && text.utf8.allSatisfy { $0 > 32 && $0 != 127 } && PolicyText.isName(text)
  }
}
