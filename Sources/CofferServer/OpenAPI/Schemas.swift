/// The bodies that the API takes and gives, by name. The tests hold real answers to them.
enum Schemas {
  enum Name: String, CaseIterable {
    case problem, state, pageOfAdministrators, administrator, roleBody, pageOfInvitations, invitation, newInvitation
    case setUp, account, signIn, session, newPassword, password, secondFactor, oneTimeCode
    case pageOfTokens, token, newToken
    case items, item, newItem, pageOfApps, app, newApp, reason, approvalSettings, settings, grace
    case pageOfRules, rule, condition, appIdentity, pageOfClassifications, classification, pageOfFileTypes, fileType
    case pageOfGroups, group, policyContent, policyInForce, policy, appApproval, pageOfRevisions, revision, newRevision
    case pageOfDrafts, draftLine, draft, newDraft, simulation, simulationRequest
    case keys, newDelegation, rootExportRequest, rootExport, pageOfAuditEntries, auditEntry, checkpoint
    case pageOfDevices, device, deviceGroups, deviceReport, pageOfCommands, command, newCommand, pageOfDecisions
    case pageOfEnrollments, enrollment, newEnrollment, enroll, enrolled, deviceTokenRequest, deviceToken, receipt
    case managedSettings, signedSettings, deviceLog, newDeviceLog
    case signedPolicy, statusRequest, signedStatus, orders, decisions, decisionsReceipt

    /// As the document has it.
    var title: String { rawValue.prefix(1).uppercased() + rawValue.dropFirst() }
  }

  static let named: [Name: Schema] = [general, accounts, apps, policy, keysAndAudit, devices, deviceSide]
    .reduce(into: [:]) { all, part in all.merge(part) { first, _ in first } }

  static let id = Schema.text(format: "uuid")
  static let time = Schema.integer("Seconds since 1970.")
  /// Ids that companies give.
  static let identifier = Schema.text(pattern: "^[A-Za-z0-9._-]{1,128}$")
  static let shortText = Schema.text("1 to 200 bytes without control characters.", minimum: 1, maximum: 200)
  static let jws = Schema.text("A compact JWS.")
  static let digest = Schema.text("SHA-256 in hexadecimal.", pattern: "^[0-9a-f]{64}$")
  static let actor = Schema.text("Who did it, such as administrator:ID, token:ID, operator or server.")
  static let role = Schema.choice(of: Role.self)
  static let permissions = Schema.list(of: .choice(of: Permission.self), minimum: 1)
  static let publicKey = Schema.text("An Ed25519 public key in base64url.", pattern: "^[A-Za-z0-9_-]{43}$")
  static let next = ["next": Schema.text("To be sent as cursor; absent on the last page.")]

  static func page(of name: Name) -> Schema {
    .object(["items": .list(of: .reference(name))], optional: next)
  }

  private static let general: [Name: Schema] = [
    .problem: .object(
      [
        "type": .choice(HTTPProblem.Name.allCases.map { "urn:coffer:problem:\($0.rawValue)" }), "title": .text(),
        "status": .integer(), "detail": .text("What to do about it."),
      ],
      optional: [
        "errors": .list(of: .object(["field": .text(), "detail": .text()])),
        "error": .text("RFC 6749's code."),
      ]),
    .state: .object(["status": .text()]),
  ]
}
