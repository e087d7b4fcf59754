internal import CofferCrypto
internal import CofferPolicy
internal import CofferSystem
internal import Foundation
internal import HTTPTypes
internal import Hummingbird

/// What a policy would decide: the one in force, a draft, or an earlier revision. By the same function as on devices.
extension PolicyServer {
  private struct SimulationBody: StrictBody {
    enum CodingKeys: String, CodingKey, CaseIterable { case draft, revision, requests }
    /// A draft's id.
    let draft: String?
    let revision: Int64?
    let requests: [Question]
  }

  private struct Question: Decodable {
    struct App: Decodable {
      let bundleId: String
      let teamId: String
      let teamKey: String?
      let version: String
      let tier: Tier
    }

    struct File: Decodable {
      /// With or without the dot.
      let fileExtension: String?
      /// What the content is; absent: what its extension says.
      let content: String?
      let classification: String?
      let protection: ProtectionLevel?
      let size: Int64?

      private enum CodingKeys: String, CodingKey {
        case fileExtension = "extension"
        case content, classification, protection, size
      }
    }

    /// Absent: the device's owner.
    let app: App?
    let action: Action
    let file: File?
    let groups: [String]?
    let isDeviceUnlocked: Bool?
    /// Seconds.
    let policyAge: Int64?
    let osVersion: String?
    /// Seconds since 1970.
    let time: Int64?

    func request(_ policy: Policy) throws -> Request {
      var actor = CofferPolicy.Request.Actor.owner
      if let app {
        let key = try app.teamKey.map { text in
          guard let key = VerifyingKey(text: text) else {
            throw HTTPProblem.invalid("teamKey", "is not an Ed25519 public key in base64url")
          }
          return key
        }
        actor = .app(
          RequestingApp(
            identity: AppIdentity(bundleId: app.bundleId, teamId: app.teamId), version: app.version, teamKey: key,
            tier: app.tier))
      }
      return CofferPolicy.Request(
        actor: actor, action: action, file: file.map { Self.facts($0, policy) },
        principal: Principal(device: "simulated", groups: Set(groups ?? [])))
    }

    private static func facts(_ file: File, _ policy: Policy) -> FileFacts {
      let own = file.fileExtension.map { ($0.hasPrefix(".") ? String($0.dropFirst()) : $0).lowercased() }
      let expected = own.flatMap { ContentType.expected(of: $0, adding: policy.fileTypes) }
      let content = ContentType(fileExtension: own, sniffed: file.content ?? expected)
      return FileFacts(
        content: content, classification: file.classification, protection: file.protection ?? .complete,
        size: file.size ?? 0)
    }

    typealias Request = CofferPolicy.Request
  }

  private struct Answer: Encodable {
    let isPermitted: Bool
    let reason: Decision.Reason
    let rules: [String]
    let sentence: String
    let warning: String?
  }

  private struct Simulation: Encodable {
    let revision: Int64
    let decisions: [Answer]
  }

  @Sendable func simulate(_ call: Call, _ caller: Caller) async throws -> Response {
    let body = try call.strict(SimulationBody.self)
    guard (1...200).contains(body.requests.count) else { throw HTTPProblem.invalid("requests", "are 1 to 200") }
    guard body.draft == nil || body.revision == nil else {
      throw HTTPProblem.invalid("revision", "and draft exclude each other")
    }
    let policy = try await store.read { transaction in
      if let number = body.revision {
        return try Self.policy(of: found(transaction.revision(tenant: caller.tenant, number: number)))
      }
      let tenant = try found(transaction.tenant(id: caller.tenant))
      guard let id = body.draft else {
        return try self.policy(of: tenant, PolicyContent(of: tenant, in: transaction), in: transaction)
      }
      let draft = try found(transaction.resource(.draft, id: id, tenant: caller.tenant)).decoded(PolicyDraft.self)
      return try self.policy(of: tenant, draft.content, in: transaction)
    }
    let now = time.now().seconds
    let decisions = try body.requests.map { question in
      let context = DecisionContext(
        now: question.time ?? now, policyAge: question.policyAge ?? 0,
        isDeviceUnlocked: question.isDeviceUnlocked ?? true, osVersion: question.osVersion ?? "1")
      let decision = decide(try question.request(policy), policy: policy, context: context)
      return Answer(
        isPermitted: decision.isPermitted, reason: decision.reason, rules: decision.rules,
        sentence: decision.sentence, warning: decision.warning)
    }
    return .json(Simulation(revision: policy.revision, decisions: decisions))
  }

  /// What a stored revision says. Its signature was made here, and is of a key that may be withdrawn since.
  static func policy(of revision: Revision) throws -> Policy {
    let parts = revision.bundle.split(separator: ".")
    guard parts.count == 3, let payload = Base64URL.decode(parts[1]),
      let policy = try? JSONDecoder().decode(Policy.self, from: Data(payload))
    else { throw StoreError.damaged("a revision's bundle") }
    return policy
  }
}
