internal import CofferAPI
public import CofferCrypto
public import CofferPolicy
public import CofferSystem
internal import Foundation

/// The device's side of the policy server: joins a company, and fetches its policy.
///
/// It keeps nothing. What it returns is for the container to seal and to anchor; on any error, the enrolment that the
/// device has stays what it was.
public struct PolicyClient: Sendable {
  let time: any TimeSource
  let log: MaskedLog
  let timeout: Timeout

  public init(time: any TimeSource = SystemTime(), log: MaskedLog = MaskedLog(label: "coffer.client")) {
    self.init(time: time, log: log, timeout: Timeout(duration: .seconds(30)))
  }

  /// - Parameter timeout: for each exchange, from the first byte to the last.
  init(time: any TimeSource, log: MaskedLog = MaskedLog(label: "coffer.client"), timeout: Timeout) {
    self.time = time
    self.log = log
    self.timeout = timeout
  }

  /// Joins the company whose administrator gave out `code`.
  ///
  /// A code works once. Therefore an enrolment that the server has granted is returned even when the policy could not
  /// be confirmed afterwards: ``Enrolment/lastStatus`` is then absent, and a refresh confirms it.
  ///
  /// - Parameters:
  ///   - url: the server's address: `https://`, or `http://` on this machine.
  ///   - pinnedCertificate: the only certificate to trust, in PEM or DER, in place of those that the system trusts.
  /// - Returns: the enrolment, and the device's new key, by which it shows later who it is.
  public func enroll(
    url: String, code text: String, pinnedCertificate: [UInt8]? = nil
  ) async throws(ClientError) -> (Enrolment, SigningKey) {
    let server = try ServerAddress(url)
    guard let code = EnrollmentCode(text) else { throw .badCode }
    let pinned = try PinnedCertificate(optional: pinnedCertificate)
    let deviceKey = SigningKey()
    let enrolment = try await Connection.with(server, pinned: pinned, timeout: timeout) {
      connection async throws(ClientError) in
      let request = EnrollRequest(code: code.secret, deviceKey: deviceKey.verifyingKey.text, platform: Self.platform)
      let response = try await enroll(request, over: connection)
      guard let root = VerifyingKey(text: response.rootKey) else { throw .documentRefused(.foreignRoot) }
      do throws(PolicyRefusal) {
        return try Enrolment(
          tenant: response.tenant, device: response.deviceId, server: server.base, root: root,
          fingerprint: code.fingerprint, pinnedCertificate: pinned?.der, keyset: response.keyset,
          bundle: response.policy, now: time.now().seconds)
      } catch {
        throw .documentRefused(error)
      }
    }
    do throws(ClientError) {
      return (try await refresh(enrolment, deviceKey: deviceKey), deviceKey)
    } catch {
      log.warning("enrolled, but the policy is not confirmed: \(public: error)")
      return (enrolment, deviceKey)
    }
  }

  private func enroll(
    _ request: EnrollRequest, over connection: Connection
  ) async throws(ClientError) -> EnrollResponse {
    let answer = try await connection.send(
      "/v1/enroll", headers: [("content-type", "application/json")], body: Self.json(request),
      expected: [201, 404], limit: Limit.documents)
    if answer.status == 404 {
      // Without the problem document, the address is wrong and the code may well be right.
      let problem = try answer.decoded(Problem.self)
      throw problem.type == Problem.urn(Problem.enrollmentCode) ? .codeRefused : .unexpectedAnswer(status: 404)
    }
    return try answer.decoded(EnrollResponse.self)
  }

  static func json(_ value: some Encodable) -> [UInt8] {
    do {
      return Array(try JSONEncoder().encode(value))
    } catch {
      fatalError("a request has no value that JSON lacks")
    }
  }

  /// Bodies, in bytes.
  enum Limit {
    /// A policy of the largest size, its keyset, and what stands around them.
    static let documents = SignedDocument.maximumSize + 1 << 20
    static let messages = 64 << 10
  }

  #if os(iOS)
    private static let platform = "ios"
  #elseif os(macOS)
    private static let platform = "macos"
  #else
    private static let platform = "linux"
  #endif
}

extension PinnedCertificate {
  init?(optional bytes: [UInt8]?) throws(ClientError) {
    guard let bytes else { return nil }
    try self.init(bytes)
  }
}
