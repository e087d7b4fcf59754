internal import CofferSystem
internal import HTTPTypes
internal import Hummingbird

/// Establishes who calls, by bearer token (RFC 6750).
struct Authentication: Sendable {
  let store: any PolicyStore
  let time: any TimeSource

  /// The API token of `request`. Throws a problem with status 401 when it has none that is known and unexpired.
  func token(of request: Request) async throws -> APIToken {
    let hash = try bearer(.api, of: request)
    let token = try await store.read { try $0.apiToken(hash: hash) }
    guard let token, time.now().seconds < token.expiresAt else { throw HTTPProblem.unauthorized(tokenGiven: true) }
    return token
  }

  /// The device whose token `request` carries. Throws a problem with status 401 as ``token(of:)`` does.
  func device(of request: Request) async throws -> Device {
    let hash = try bearer(.device, of: request)
    let now = time.now().seconds
    guard let device = try await store.read({ try $0.device(tokenHash: hash, now: now) }) else {
      throw HTTPProblem.unauthorized(tokenGiven: true)
    }
    return device
  }

  /// The hash of the token. Only its own kind is looked up: one kind never passes for the other.
  private func bearer(_ kind: BearerToken.Kind, of request: Request) throws -> [UInt8] {
    let headers = request.headers[values: .authorization]
    guard !headers.isEmpty else { throw HTTPProblem.unauthorized(tokenGiven: false) }
    let parts = headers[0].split(separator: " ", maxSplits: 1)
    guard headers.count == 1, parts.count == 2, parts[0].lowercased() == "bearer", parts[1].hasPrefix(kind.rawValue)
    else { throw HTTPProblem.unauthorized(tokenGiven: true) }
    return BearerToken.hash(of: String(parts[1]))
  }
}
