import CofferAPI
import CofferCrypto
import CofferPolicy
import CofferSystem
import Foundation
import Synchronization

@testable import CofferClient

/// A company and its policy server in a few lines: it does what the real one promises, and what a test adds.
final class FakeCompany: Sendable {
  struct State {
    var key = SigningKey()
    var epoch: Int64 = 1
    var revision: Int64 = 5
    var previous: String?
    var now: Int64 = 1_800_000_000
    var keysetLifetime: Int64 = 1_000_000
    var device: VerifyingKey?
    var token = "token-\(UUID().uuidString)"
    /// Answers by path, instead of the proper ones.
    var scripted: [String: @Sendable (Ask) -> Reply?] = [:]
    var change: @Sendable (inout Policy) -> Void = { _ in }
  }

  static let device = "device-1"
  let root = SigningKey()
  let code: EnrollmentCode
  private let state: Synchronization.Mutex<State>

  init() {
    code = EnrollmentCode(secret: Randomness.bytes(20), fingerprint: root.verifyingKey.fingerprint)
    state = Synchronization.Mutex(State())
  }

  func update(_ change: (inout sending State) -> Void) { state.withLock { change(&$0) } }
  var current: State { state.withLock { $0 } }

  func script(_ path: String, _ answer: @escaping @Sendable (Ask) -> Reply?) { update { $0.scripted[path] = answer } }

  var clock: any TimeSource { Clock(company: self) }

  /// A client by this company's clock, that waits for as long as a busy machine may take: hundreds of tests share few
  /// threads, and what one of them asks may be answered minutes later.
  var client: PolicyClient { PolicyClient(time: clock, timeout: Timeout(duration: .seconds(3600))) }

  private struct Clock: TimeSource {
    let company: FakeCompany

    func now() -> Timestamp { Timestamp(seconds: company.current.now) }
  }

  func keyset() -> String {
    let state = current
    let keyset = Keyset(
      tenant: "acme", epoch: state.epoch, keys: [state.key.verifyingKey], issuedAt: state.now,
      notAfter: state.now + state.keysetLifetime)
    return try! SignedKeyset(issuing: keyset, root: root).document.text
  }

  func bundle() -> PolicyBundle {
    let state = current
    var policy = Policy(
      tenant: "acme", revision: state.revision, keyEpoch: state.epoch, issuedAt: 1_799_999_000,
      notAfter: 1_900_000_000, prevHash: state.previous)
    state.change(&policy)
    return try! PolicyBundle(issuing: policy, key: state.key)
  }

  /// The next revision.
  func advance() {
    let digest = bundle().digest
    update {
      $0.revision += 1
      $0.previous = digest
    }
  }

  func status(nonce: String) -> String {
    let (state, bundle) = (current, bundle())
    let status = Status(
      tenant: "acme", audience: Self.device, nonce: nonce, revision: state.revision, digest: bundle.digest,
      time: state.now, keyEpoch: state.epoch)
    return try! SignedStatus(issuing: status, key: state.key).document.text
  }

  @Sendable func answer(_ ask: Ask) -> Reply {
    if let scripted = current.scripted[ask.path]?(ask) { return scripted }
    switch (ask.method, ask.path) {
    case ("POST", "/v1/enroll"): return enroll(ask)
    case ("POST", "/v1/device/token"): return token(ask)
    case ("GET", "/v1/device/policy"): return policy(ask)
    case ("POST", "/v1/device/status"): return status(ask)
    default: return problem("not-found", 404)
    }
  }

  private func enroll(_ ask: Ask) -> Reply {
    guard let request = try? JSONDecoder().decode(EnrollRequest.self, from: Data(ask.body)),
      request.code == code.secret, let key = VerifyingKey(text: request.deviceKey), current.device == nil
    else { return problem(Problem.enrollmentCode, 404) }
    update { $0.device = key }
    return json(
      EnrollResponse(
        deviceId: Self.device, tenant: "acme", rootKey: root.verifyingKey.text, keyset: keyset(),
        policy: bundle().document.text), status: 201)
  }

  private func token(_ ask: Ask) -> Reply {
    let form = URLComponents(string: "?" + String(decoding: ask.body, as: UTF8.self))?.queryItems ?? []
    guard form.first(where: { $0.name == "grant_type" })?.value == TokenRequest.grantType,
      let assertion = form.first(where: { $0.name == "assertion" })?.value, let key = current.device,
      (try? DeviceAssertion(
        verifying: assertion, device: Self.device, tenant: "acme", key: key, now: current.now)) != nil
    else { return problem("invalid-grant", 401) }
    return json(TokenResponse(accessToken: current.token, expiresIn: 300))
  }

  private func policy(_ ask: Ask) -> Reply {
    guard isAuthorized(ask) else { return problem("unauthorized", 401) }
    let bundle = bundle()
    let tag = "\"\(bundle.digest)\""
    if ask.headers["if-none-match"] == tag { return Reply(status: 304, headers: ["etag": tag]) }
    return json(PolicyResponse(keyset: keyset(), policy: bundle.document.text))
  }

  private func status(_ ask: Ask) -> Reply {
    guard isAuthorized(ask), let request = try? JSONDecoder().decode(StatusRequest.self, from: Data(ask.body)) else {
      return problem("unauthorized", 401)
    }
    return json(StatusResponse(status: status(nonce: request.nonce)))
  }

  private func isAuthorized(_ ask: Ask) -> Bool { ask.headers["authorization"] == "Bearer \(current.token)" }

  func json(_ value: some Encodable, status: Int = 200) -> Reply {
    Reply(status: status, body: Array(try! JSONEncoder().encode(value)))
  }

  func problem(_ name: String, _ status: Int) -> Reply {
    json(Problem(name: name, title: "Refused", status: status), status: status)
  }
}
