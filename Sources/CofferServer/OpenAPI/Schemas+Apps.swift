internal import CofferPolicy

extension Schemas {
  private static let appName = Schema.text(pattern: "^[A-Za-z0-9._-]{1,155}$")
  private static let actions = Schema.list(of: .choice(of: Action.self), maximum: 100)
  /// What people write; with or without a dot.
  private static let extensions = Schema.list(of: .text(minimum: 1, maximum: 33), maximum: 1_000)
  private static let fileExtension = Schema.text(pattern: "^[a-z0-9+_-]{1,32}$")

  private static let draft: [String: Schema] = [
    "name": shortText, "bundleId": appName, "teamId": appName, "extensions": extensions, "actions": actions,
  ]

  static let apps: [Name: Schema] = [
    .items: .list(of: .reference(.item)),
    .item: .object(
      [
        "id": id, "name": .text(), "bundleId": appName, "teamId": appName, "extensions": .list(of: fileExtension),
        "actions": actions,
      ], optional: ["teamKey": publicKey]),
    .newItem: .object(draft, optional: ["id": .text("In a PUT that of the path."), "teamKey": publicKey]),
    .pageOfApps: page(of: .app),
    .app: .object(
      [
        "id": id, "name": .text(), "bundleId": appName, "teamId": appName, "tier": .choice(of: Tier.self),
        "extensions": .list(of: fileExtension), "actions": actions, "state": .choice(of: AppRecord.State.self),
        "approvers": .list(of: .object(["actor": actor, "at": time], optional: ["reason": .text()])),
      ],
      optional: [
        "teamKey": publicKey, "platform": .text(), "minimumVersion": .text(), "expiresAt": time, "requester": actor,
        "reason": .text(), "revokedBy": actor, "revocationReason": .text(),
      ]),
    .newApp: .object(
      draft,
      optional: [
        "teamKey": publicKey, "tier": .choice(of: Tier.self), "platform": shortText,
        "minimumVersion": .text("One to four numbers with dots between them."), "reason": shortText,
        "expiresAt": time,
      ]),
    .reason: .object(optional: ["reason": shortText, "expiresAt": time]),
    .approvalSettings: .object(["twoPeople": .boolean]),
    .appApproval: .object(
      [
        "id": identifier, "name": .text(), "bundleId": appName, "teamId": appName, "tier": .choice(of: Tier.self),
        "extensions": .list(of: fileExtension), "actions": actions,
      ], optional: ["teamKey": publicKey]),
  ]
}
