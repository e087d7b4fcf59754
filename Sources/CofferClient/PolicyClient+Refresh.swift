internal import CofferAPI
public import CofferCrypto
public import CofferPolicy
internal import CofferSystem

extension PolicyClient {
  /// Fetches the company's policy when it has changed, and has the company confirm the one that is held.
  ///
  /// When a new policy was accepted but could not be confirmed, it is returned with ``Enrolment/lastStatus`` absent:
  /// a newer policy is worth keeping, though only a confirmation renews the grace period.
  public func refresh(_ enrolment: Enrolment, deviceKey: SigningKey) async throws(ClientError) -> Enrolment {
    let server = try ServerAddress(enrolment.server)
    let pinned = try PinnedCertificate(optional: enrolment.pinnedCertificate)
    return try await Connection.with(server, pinned: pinned, timeout: timeout) {
      connection async throws(ClientError) in
      let token = try await token(for: enrolment, deviceKey: deviceKey, over: connection)
      return try await refresh(enrolment, token: token, over: connection)
    }
  }

  func refresh(
    _ enrolment: Enrolment, token: String, over connection: Connection
  ) async throws(ClientError) -> Enrolment {
    var current = enrolment
    // The policy may change again between the two questions; a server on which it always does is not believed.
    for _ in 0..<3 {
      do throws(ClientError) {
        current = try await fetched(current, token: token, over: connection)
        return try await confirmed(current, token: token, over: connection)
      } catch {
        if case .documentRefused(.outdated) = error { continue }
        if current.bundle == enrolment.bundle { throw error }
        log.warning("a new policy was accepted, but it is not confirmed: \(public: error)")
        return current
      }
    }
    throw .documentRefused(.conflictingRevision(current.policy.revision))
  }

  /// Shows who the device is (RFC 7523), and gets a token for a short while.
  func token(
    for enrolment: Enrolment, deviceKey: SigningKey, over connection: Connection
  ) async throws(ClientError) -> String {
    let claims = DeviceAssertion(
      device: enrolment.device, tenant: enrolment.tenant, now: time.now().seconds,
      id: Randomness.bytes(16).hexadecimal)
    guard let assertion = try? claims.signed(with: deviceKey) else { throw .deviceRefused }
    // Neither value has a character that a form would escape, but for the colons of the grant type.
    let grantType = TokenRequest.grantType.replacing(":", with: "%3A")
    let answer = try await connection.send(
      "/v1/device/token", headers: [("content-type", "application/x-www-form-urlencoded")],
      body: Array("grant_type=\(grantType)&assertion=\(assertion)".utf8), expected: [200, 400, 401, 403],
      limit: Limit.messages)
    guard answer.status == 200 else { throw .deviceRefused }
    let response = try answer.decoded(TokenResponse.self)
    let isToken =
      (1...4096).contains(response.accessToken.utf8.count)
      && response.accessToken.utf8.allSatisfy { (33...126).contains($0) }
    guard isToken, response.tokenType.lowercased() == "bearer" else { throw .unexpectedAnswer(status: 200) }
    return response.accessToken
  }

  private func fetched(
    _ enrolment: Enrolment, token: String, over connection: Connection
  ) async throws(ClientError) -> Enrolment {
    var headers = [("authorization", "Bearer \(token)")]
    let now = time.now().seconds
    // The tag is that of the policy alone; a keyset that is to be renewed is asked for by leaving the tag out.
    let isConditional = !enrolment.keyset.keyset.isPastHalf(at: now)
    if isConditional { headers.append(("if-none-match", "\"\(enrolment.bundle.digest)\"")) }
    let answer = try await connection.send(
      "/v1/device/policy", headers: headers, expected: isConditional ? [200, 304, 401, 403] : [200, 401, 403],
      limit: Limit.documents)
    if answer.status == 304 { return enrolment }
    guard answer.status == 200 else { throw .deviceRefused }
    let response = try answer.decoded(PolicyResponse.self)
    do throws(PolicyRefusal) {
      return try enrolment.accepting(bundle: response.policy, keyset: response.keyset, now: now)
    } catch {
      throw .documentRefused(error)
    }
  }

  private func confirmed(
    _ enrolment: Enrolment, token: String, over connection: Connection
  ) async throws(ClientError) -> Enrolment {
    let nonce = Base64URL.encode(Randomness.bytes(32))
    let uptime = Uptime(time.sinceBoot())
    let answer = try await connection.send(
      "/v1/device/status",
      headers: [("authorization", "Bearer \(token)"), ("content-type", "application/json")],
      body: Self.json(StatusRequest(nonce: nonce)), expected: [200, 401, 403], limit: Limit.messages)
    guard answer.status == 200 else { throw .deviceRefused }
    let response = try answer.decoded(StatusResponse.self)
    do throws(PolicyRefusal) {
      return try enrolment.accepting(status: response.status, nonce: nonce, now: time.now().seconds, uptime: uptime)
    } catch {
      throw .documentRefused(error)
    }
  }
}

extension Uptime {
  /// As a policy's freshness counts it.
  init(_ moment: BootMoment) {
    self.init(boot: moment.boot.hexadecimal, seconds: Int64(clamping: moment.seconds))
  }
}

extension Keyset {
  /// Whether more than half of its life is over.
  fileprivate func isPastHalf(at now: Int64) -> Bool { now > issuedAt / 2 + notAfter / 2 }
}
