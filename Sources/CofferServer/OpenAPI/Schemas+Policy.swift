internal import CofferPolicy

extension Schemas {
  private static func condition(_ kind: String, _ operands: [String: Schema] = [:], _ optional: [String: Schema] = [:])
    -> Schema
  {
    .object(
      operands.merging(["kind": .constant(.string(kind))]) { first, _ in first },
      optional: optional.merging(["not": .boolean]) { first, _ in first })
  }

  private static let versions: [String: Schema] = ["atLeast": .text(), "below": .text()]
  private static let actions = Schema.list(of: .choice(of: Action.self), minimum: 1, unique: true)
  private static func scope(_ schema: Schema) -> Schema {
    .list(of: schema, minimum: 1, maximum: 1_000, unique: true)
  }
  private static let fileExtension = Schema.text(pattern: "^[a-z0-9+_-]{1,32}$")
  private static let longest: Int64 = 10 * 366 * 86_400

  static let policy: [Name: Schema] = [
    .settings: .object([
      "ownerActions": .list(of: .choice(of: Action.self), unique: true), "allowFilteredTier": .boolean,
    ]),
    .managedSettings: .dictionary(of: .anything, maximum: ManagedSettings.maximumCount),
    .signedSettings: .object(
      ["ownerActions": .list(of: .choice(of: Action.self), unique: true), "allowFilteredTier": .boolean],
      optional: ["managed": .reference(.managedSettings)]),
    .grace: .object([
      "warnAfter": .integer("Seconds.", minimum: 1, maximum: longest),
      "blockAfter": .integer("Seconds, not less than warnAfter.", minimum: 1, maximum: longest),
    ]),
    .pageOfRules: page(of: .rule),
    .rule: .object(
      [
        "id": identifier, "effect": .choice(of: Rule.Effect.self),
        "conditions": .list(of: .reference(.condition), maximum: 20),
      ],
      optional: [
        "actions": actions, "apps": scope(.reference(.appIdentity)), "extensions": scope(fileExtension),
        "classifications": scope(identifier), "groups": scope(identifier),
      ]),
    .appIdentity: .object(["bundleId": .text(), "teamId": .text()]),
    .condition: .any(of: [
      condition("deviceUnlocked"), condition("policyAgeAtMost", ["seconds": .integer()]),
      condition("osVersion", [:], versions), condition("appVersion", [:], versions),
      condition("protectionAtLeast", ["level": .choice(of: ProtectionLevel.self)]),
      condition("group", ["group": .text()]),
      condition(
        "timeWindow",
        [
          "window": .object([
            "days": .list(of: .integer(minimum: 1, maximum: 7)), "start": .integer(minimum: 0, maximum: 1439),
            "end": .integer(minimum: 1, maximum: 1440), "offset": .integer(minimum: -840, maximum: 840),
          ])
        ]),
    ]),
    .pageOfClassifications: page(of: .classification),
    .classification: .object(["id": identifier, "name": shortText]),
    .pageOfFileTypes: page(of: .fileType),
    .fileType: .object([
      "extension": fileExtension,
      "mediaTypes": .list(
        of: .text("Such as image/vnd.dwg.", pattern: "^[a-z0-9.+_-]+/[a-z0-9.+_-]+$"), minimum: 1, maximum: 20),
    ]),
    .pageOfGroups: page(of: .group),
    .group: .object(["id": identifier, "name": shortText]),
    .policyContent: .object([
      "rules": .list(of: .reference(.rule)), "classifications": .list(of: .reference(.classification)),
      "fileTypes": .list(of: .reference(.fileType)), "settings": .reference(.signedSettings),
      "grace": .reference(.grace),
    ]),
    .policyInForce: .object(["revision": .integer(), "digest": digest, "content": .reference(.policyContent)]),
    .policy: .object(
      [
        "schema": .integer(), "tenant": identifier, "audience": identifier, "revision": .integer(minimum: 1),
        "keyEpoch": .integer(minimum: 1), "issuedAt": time, "notAfter": time,
        "apps": .list(of: .reference(.appApproval)), "rules": .list(of: .reference(.rule)),
        "classifications": .list(of: .reference(.classification)), "fileTypes": .list(of: .reference(.fileType)),
        "settings": .reference(.signedSettings), "grace": .reference(.grace),
        "commands": .list(of: .text(), maximum: 0),
      ], optional: ["prevHash": digest]),
    .pageOfRevisions: page(of: .revision),
    .revision: .object(
      ["revision": .integer(), "digest": digest, "keyEpoch": .integer(), "issuedAt": time, "notAfter": time],
      optional: ["policy": .reference(.policy)]),
    .newRevision: .object(["revision": .integer("The number that it got.")]),
    .pageOfDrafts: page(of: .draftLine),
    .draftLine: .object(["id": id, "note": .text(), "base": .integer("The revision that it was made from.")]),
    .draft: .object(
      [
        "id": id, "note": .text(), "base": .integer("The revision that it was made from."),
        "content": .reference(.policyContent),
      ], optional: ["author": actor, "contributors": .list(of: actor)]),
    .newDraft: .object(optional: ["note": .text(maximum: 200), "content": .reference(.policyContent)]),
    .simulationRequest: .object(
      ["requests": .list(of: question, minimum: 1, maximum: 200)],
      optional: ["draft": .text("A draft's id."), "revision": .integer()]),
    .simulation: .object([
      "revision": .integer(),
      "decisions": .list(
        of: .object(
          [
            "isPermitted": .boolean, "reason": .choice(of: Decision.Reason.self), "rules": .list(of: .text()),
            "sentence": .text(),
          ], optional: ["warning": .text()])),
    ]),
  ]

  private static let question = Schema.object(
    ["action": .choice(of: Action.self)],
    optional: [
      "app": .object(
        ["bundleId": .text(), "teamId": .text(), "version": .text(), "tier": .choice(of: Tier.self)],
        optional: ["teamKey": publicKey]),
      "file": .object(
        optional: [
          "extension": .text(), "content": .text("A media type."), "classification": .text(),
          "protection": .choice(of: ProtectionLevel.self), "size": .integer(),
        ]),
      "groups": .list(of: .text()), "isDeviceUnlocked": .boolean, "policyAge": .integer("Seconds."),
      "osVersion": .text(), "time": time,
    ])
}
