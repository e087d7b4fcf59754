internal import CofferAPI
internal import CofferPolicy
internal import Hummingbird

/// What a client sends to ask for an app, or to change one.
struct AppBody: StrictBody {
  enum CodingKeys: String, CodingKey, CaseIterable {
    case name, bundleId, teamId, teamKey, tier, extensions, actions, platform, minimumVersion, reason, expiresAt
  }

  private let draft: ItemDraft
  private let tier: Tier?
  private let platform: String?
  private let minimumVersion: String?
  private let reason: String?
  /// Seconds since 1970.
  private let expiresAt: Int64?

  init(from decoder: any Decoder) throws {
    draft = try ItemDraft(from: decoder)
    let container = try decoder.container(keyedBy: CodingKeys.self)
    tier = try container.decodeIfPresent(Tier.self, forKey: .tier)
    platform = try container.decodeIfPresent(String.self, forKey: .platform)
    minimumVersion = try container.decodeIfPresent(String.self, forKey: .minimumVersion)
    reason = try container.decodeIfPresent(String.self, forKey: .reason)
    expiresAt = try container.decodeIfPresent(Int64.self, forKey: .expiresAt)
  }

  /// A request for the app, by `actor`. Throws a problem that names the field that is not valid.
  func record(id: String, requester: Actor, now: Int64) throws -> AppRecord {
    var approval: AppApproval
    do { approval = try draft.approval(id: id) } catch { throw HTTPProblem.invalid(error.member, error.reason) }
    if let tier {
      guard tier == .filtered || approval.teamKey != nil else {
        throw HTTPProblem.invalid("tier", "needs a teamKey: without one, an app is only its name")
      }
      approval.tier = tier
    }
    for (field, text) in [("platform", platform), ("reason", reason)] {
      guard text.map(PolicyText.isName) ?? true else {
        throw HTTPProblem.invalid(field, "has 1 to 200 bytes and no control characters")
      }
    }
    guard minimumVersion.map(PolicyText.isVersion) ?? true else {
      throw HTTPProblem.invalid("minimumVersion", "is one to four numbers with dots between them")
    }
    guard expiresAt.map({ $0 > now }) ?? true else { throw HTTPProblem.invalid("expiresAt", "is not in the future") }
    let details = AppRecord.Details(
      platform: platform, minimumVersion: minimumVersion, requester: requester.description, reason: reason)
    return AppRecord(approval: approval, state: .requested, expiresAt: expiresAt, details: details)
  }
}

/// An app as the API shows it.
struct AppView: Encodable {
  let id: String
  let name: String
  let bundleId: String
  let teamId: String
  let teamKey: String?
  let tier: Tier
  let extensions: [String]
  let actions: [String]
  let platform: String?
  let minimumVersion: String?
  let state: AppRecord.State
  let expiresAt: Int64?
  let requester: String?
  let reason: String?
  let approvers: [AppRecord.Approver]
  let revokedBy: String?
  let revocationReason: String?

  init(_ app: AppRecord) {
    id = app.approval.id
    name = app.approval.name
    bundleId = app.approval.bundleId
    teamId = app.approval.teamId
    teamKey = app.approval.teamKey?.text
    tier = app.approval.tier
    extensions = app.approval.extensions
    actions = app.approval.actions.map(\.rawValue)
    platform = app.details.platform
    minimumVersion = app.details.minimumVersion
    state = app.state
    expiresAt = app.expiresAt
    requester = app.details.requester
    reason = app.details.reason
    approvers = app.details.approvers
    revokedBy = app.details.revokedBy
    revocationReason = app.details.revocationReason
  }

  var tag: EntityTag { EntityTag(of: Response.encoded(self)) }
}
