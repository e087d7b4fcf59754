internal import Foundation
internal import HTTPTypes
internal import Hummingbird

/// Tokens for programs: shown once, limited by role, scopes and time, listed, withdrawn.
extension PolicyServer {
  private struct TokenView: Encodable {
    let id: String
    let name: String
    let role: Role
    let scopes: [String]
    let createdAt: Int64
    let expiresAt: Int64
    /// Only in the answer that makes it.
    var token: String?

    init(_ token: APIToken, secret: BearerToken? = nil) {
      id = token.id
      name = token.name
      role = token.role
      scopes = token.permissions.map(\.rawValue).sorted()
      createdAt = token.createdAt
      expiresAt = token.expiresAt
      self.token = secret?.text
    }
  }

  private struct TokenBody: StrictBody {
    enum CodingKeys: String, CodingKey, CaseIterable { case name, role, scopes, expiresIn }
    let name: String
    let role: Role
    /// Absent: all that the role may do.
    let scopes: [Permission]?
    /// Seconds.
    let expiresIn: Int64
  }

  @Sendable func listTokens(_ call: Call, _ caller: Caller) async throws -> Response {
    let request = try PageRequest(call, caller, sealing)
    let found = try await store.read {
      try $0.apiTokens(tenant: caller.tenant, after: request.after, limit: request.limit + 1)
    }
    return .json(try request.page(of: found) { TokenView($0) })
  }

  @Sendable func createToken(_ call: Call, _ caller: Caller) async throws -> Response {
    let body = try call.strict(TokenBody.self)
    guard body.name.isEmpty || Administration.isName(body.name) else {
      throw HTTPProblem.invalid("name", "has at most 200 bytes and no control characters")
    }
    guard Administration.tokenLifetimes.contains(body.expiresIn) else {
      throw HTTPProblem.invalid("expiresIn", "is from one minute to 366 days, in seconds")
    }
    guard body.scopes.map({ !$0.isEmpty && body.role.permissions.isSuperset(of: $0) }) ?? true else {
      throw HTTPProblem.invalid("scopes", "are one or more that the role has")
    }
    let (id, secret) = (UUID().uuidString.lowercased(), BearerToken(.api))
    return try await create(call, caller) { change in
      let token = APIToken(
        id: id, tenant: caller.tenant, role: body.role, name: body.name, scopes: body.scopes.map(Set.init),
        createdAt: change.now, expiresAt: change.now + body.expiresIn, createdBy: caller.actor.description)
      try Self.demandWithin(token.permissions, caller)
      try change.transaction.insert(token, hash: secret.hash)
      try change.record(
        .tokenCreated, id,
        ["role": token.role.rawValue, "scopes": token.permissions.map(\.rawValue).sorted().joined(separator: " ")],
        to: TokenView(token))
      return KeptAnswer(TokenView(token, secret: secret))
    }
  }

  @Sendable func revokeToken(_ call: Call, _ caller: Caller) async throws -> Response {
    let id = try call.id()
    try await commit(caller) { change in
      let token = try found(change.transaction.apiToken(tenant: caller.tenant, id: id))
      try Self.demandWithin(token.permissions, caller)
      try change.withdraw(token)
    }
    return .plain(.noContent)
  }
}
