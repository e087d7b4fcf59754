internal import CofferAPI
internal import CofferPolicy

extension Schemas {
  static let keysAndAudit: [Name: Schema] = [
    .keys: .object(
      [
        "rootKey": publicKey, "rootFingerprint": digest, "keyEpoch": .integer(), "signingKey": publicKey,
        "keysetNotAfter": time,
        "delegations": .list(
          of: .object(["use": .choice(of: Delegation.Use.self), "key": .text(), "notAfter": time])),
      ], optional: ["rootExportedAt": time]),
    .newDelegation: .object(
      ["use": .choice(of: Delegation.Use.self)],
      optional: ["key": .text("Of an escrow key: an X25519 public key in base64url.")]),
    .rootExportRequest: .object(["password": .text(), "passphrase": .text()]),
    .rootExport: .object([
      "format": .text(), "version": .integer(), "tenant": id, "rootKey": publicKey, "costExponent": .integer(),
      "salt": .text(), "sealed": .text(),
    ]),
    .pageOfAuditEntries: page(of: .auditEntry),
    .auditEntry: .object([
      "number": .integer(), "hash": digest, "entry": .text("The exact bytes that the hash is of."),
    ]),
    .checkpoint: .object(["checkpoint": jws, "keyset": jws]),
  ]

  private static let sentAt = Schema.integer("Milliseconds since 1970 by the device's clock.")
  private static let commandKind = Schema.choice(of: DeviceCommand.Kind.self)
  private static func lifetime(_ range: ClosedRange<Int64>) -> Schema {
    .integer("Seconds.", minimum: range.lowerBound, maximum: range.upperBound)
  }

  static let devices: [Name: Schema] = [
    .pageOfDevices: page(of: .device),
    .device: .object(
      [
        "id": id, "enrolledAt": time, "groups": .list(of: identifier),
        "desiredRevision": .integer("The company's newest."), "pendingCommands": .list(of: commandKind),
      ],
      optional: [
        "platform": .text(), "requestedGroups": .list(of: identifier), "lastSeenAt": time,
        "report": .reference(.deviceReport), "reportedAt": time,
      ]),
    .deviceGroups: .object(["groups": .list(of: identifier, maximum: 100, unique: true)]),
    .deviceReport: .object(
      optional: [
        "osVersion": .text(minimum: 1, maximum: 64), "version": .text(minimum: 1, maximum: 64),
        "isPasscodeSet": .boolean, "isProtectionAvailable": .boolean, "appliedRevision": .integer(minimum: 1),
        "appliedDigest": digest,
        "settings": .dictionary(of: .choice(of: DeviceReport.Treatment.self), maximum: 100),
        "sentAt": sentAt,
        "audit": .object(
          ["number": .integer("Of the newest entry that the device has seen.", minimum: 1), "hash": digest],
          optional: ["fault": .text("That it was shown another audit later.", minimum: 1, maximum: 200)]),
        "escrow": .object([
          "tenant": id, "vault": .text(), "escrowKey": publicKey, "encapsulatedKey": .text(), "sealedKey": .text(),
          "clearingKey": publicKey, "signature": .text(),
        ]),
      ]),
    .pageOfCommands: page(of: .command),
    .command: .object(
      [
        "id": id, "device": id, "kind": commandKind,
        "state": .choice(CommandRecord.State.allCases.map(\.rawValue) + ["expired"]), "createdBy": actor,
        "createdAt": time, "expiresAt": time,
      ], optional: ["answeredAt": time, "receipt": jws, "reason": .text("The device's own words.")]),
    .newCommand: .object(
      ["kind": commandKind],
      optional: [
        "expiresIn": lifetime(DeviceCommands.lifetimes),
        "clearing": .text(
          "Of clearPasscode, which needs it: what coffer escrow clear printed.", minimum: 1,
          maximum: DeviceCommand.maximumClearing),
      ]),
    .pageOfDecisions: .object(
      [
        "items": .list(of: .object(["number": .integer(), "entry": .text(), "receivedAt": time])),
        "gaps": .list(of: .object(["from": .integer(), "through": .integer()])),
      ], optional: next),
    .deviceLog: .object(["lines": .list(of: .text()), "receivedAt": time]),
    .pageOfEnrollments: page(of: .enrollment),
    .enrollment: .object(
      ["id": id, "createdAt": time, "expiresAt": time],
      optional: ["code": .text("Only in the answer that makes it.")]),
    .newEnrollment: .object(optional: ["expiresIn": lifetime(Administration.enrollmentLifetimes)]),
  ]

  static let deviceSide: [Name: Schema] = [
    .enroll: .object(["code": .text(), "deviceKey": publicKey], optional: ["platform": shortText]),
    .enrolled: .object(["deviceId": id, "tenant": id, "rootKey": publicKey, "keyset": jws, "policy": jws]),
    .deviceTokenRequest: .object([
      "grant_type": .constant(.string("urn:ietf:params:oauth:grant-type:jwt-bearer")),
      "assertion": .text("RFC 7523, signed by the device's key."),
    ]),
    .deviceToken: .object([
      "access_token": .text(), "token_type": .constant(.string("Bearer")), "expires_in": .integer("Seconds."),
    ]),
    .receipt: .object(["receipt": jws]),
    .signedPolicy: .object(["keyset": jws, "policy": jws]),
    .statusRequest: .object(["nonce": .text("16 to 64 random bytes in base64url.", pattern: "^[A-Za-z0-9_-]{22,86}$")]),
    .signedStatus: .object(["status": jws]),
    .orders: .object(["commands": .list(of: jws), "delegations": .list(of: jws), "keyset": jws]),
    .decisions: .object([
      "entries": .list(
        of: .object(["number": .integer(minimum: 1, maximum: 100_000), "entry": .text(maximum: 2048)]), minimum: 1,
        maximum: 500)
    ]),
    .newDeviceLog: .object(
      ["lines": .list(of: .text(maximum: LogRequest.maximumLine), maximum: LogRequest.maximumLines)],
      optional: ["sentAt": sentAt]),
    .decisionsReceipt: .object(["completeThrough": .integer("Up to which nothing is missing.")]),
  ]
}
