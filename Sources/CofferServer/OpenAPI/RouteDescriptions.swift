/// A description for each route, by method and path. A route without one fails a test, and so does one without a route.
enum RouteDescriptions {
  typealias Table = [String: RouteDescription]

  static let all: Table = [
    publicOnes, accounts, apps, policy, resources, keysAndAudit, devices, deviceSide,
  ].reduce(into: [:]) { all, part in all.merge(part) { first, _ in first } }

  private static let publicOnes: Table = [
    "GET /health": .show("Whether the server can answer", .state),
    "GET /ready": .show("Whether new clients shall be sent here", .state),
    "GET /metrics": .show(
      "Counters for the operator, in Prometheus' text format", nil, problems: [.unauthorized, .notFound]),
    "GET /v1/openapi.json": .show("This document", nil),
    "POST /v1/setup": .act(
      "Makes an account, and of a server's first link the company", .setUp, .account, status: 201,
      problems: [.notFound, .alreadyExists]),
    "POST /v1/session": .act(
      "Signs in", .signIn, .session, status: 201, problems: [.signInRefused, .tooManyRequests]),
    "POST /v1/enroll": .act("Lets a device join", .enroll, .enrolled, status: 201, problems: [.enrollmentCode]),
    "POST /v1/device/token": .act(
      "Gives a device a token for its signed assertion", .deviceTokenRequest, .deviceToken,
      problems: [.invalidAssertion]),
    "POST /v1/device/receipts": .act("Takes a device's answer to an order", .receipt, problems: [.invalidReceipt]),
  ]

  private static let accounts: Table = [
    "GET /v1/session": .show("Who is signed in", .session),
    "DELETE /v1/session": .act("Signs out", nil),
    "PUT /v1/session/password": .act(
      "Sets another password, and ends all of the person's sessions", .newPassword,
      problems: [.signInRefused, .tooManyRequests]),
    "POST /v1/session/second-factor": .act(
      "Makes a secret for the authenticator", .password, .secondFactor, problems: [.signInRefused, .tooManyRequests]),
    "PUT /v1/session/second-factor": .act(
      "Shows the authenticator's code, from which on it is asked for", .oneTimeCode,
      problems: [.signInRefused, .tooManyRequests]),
    "DELETE /v1/session/second-factor": .act(
      "Takes the second factor away", .password, problems: [.signInRefused, .tooManyRequests]),

    "GET /v1/administrators": .list("Lists the company's administrators", .pageOfAdministrators),
    "GET /v1/administrators/{id}": .show("Shows an administrator", .administrator, tagged: true),
    "PUT /v1/administrators/{id}": .change(
      "Gives an administrator another role", .roleBody, .administrator, problems: [.conflict]),
    "DELETE /v1/administrators/{id}": .remove("Removes an administrator", problems: [.conflict]),
    "GET /v1/invitations": .list("Lists invitations that are open", .pageOfInvitations),
    "POST /v1/invitations": .make(
      "Makes a link for a new administrator", .newInvitation, .invitation, problems: [.alreadyExists]),
    "DELETE /v1/invitations/{id}": .remove("Withdraws an invitation", .none),
    "GET /v1/tokens": .list("Lists tokens", .pageOfTokens),
    "POST /v1/tokens": .make("Makes a token, which is shown once", .newToken, .token),
    "DELETE /v1/tokens/{id}": .remove("Withdraws a token, with what it made", .none),
  ]

  private static let apps: Table = [
    "GET /items": .show("Lists all approved apps", .items),
    "POST /items": .make("Approves an app", .newItem, .item, problems: [.alreadyExists, .conflict, .policyTooLarge]),
    "GET /items/{id}": .show("Shows an approved app", .item, tagged: true),
    "PUT /items/{id}": .change(
      "Changes an approved app", .newItem, .item, .honoured, problems: [.alreadyExists, .conflict, .policyTooLarge]),
    "DELETE /items/{id}": .remove("Removes an approved app", .honoured),

    "GET /v1/apps": .list("Lists apps of every state", .pageOfApps),
    "POST /v1/apps": .make("Asks for an app", .newApp, .app, problems: [.alreadyExists]),
    "GET /v1/apps/{id}": .show("Shows an app", .app, tagged: true),
    "PUT /v1/apps/{id}": .change("Asks for an app anew", .newApp, .app, problems: [.alreadyExists]),
    "DELETE /v1/apps/{id}": .remove("Removes an app"),
    "POST /v1/apps/{id}/approve": .change(
      "Approves an app", .reason, .app, problems: [.conflict, .policyTooLarge]),
    "POST /v1/apps/{id}/revoke": .change("Revokes an app", .reason, .app, problems: [.conflict]),
    "GET /v1/approval-settings": .show("How many people an approval takes", .approvalSettings, tagged: true),
    "PUT /v1/approval-settings": .change(
      "Sets how many people an approval takes", .approvalSettings, .approvalSettings),
  ]

  private static let policy: Table = [
    "GET /v1/settings": .show("What holds for all devices", .settings, tagged: true),
    "PUT /v1/settings": .change(
      "Sets what holds for all devices", .settings, .settings, .honoured, problems: [.conflict]),
    "GET /v1/grace": .show("How long devices decide without news", .grace, tagged: true),
    "PUT /v1/grace": .change("Sets how long devices decide without news", .grace, .grace, problems: [.conflict]),

    "GET /v1/managed-settings": .show("The configuration profile of the devices", .managedSettings, tagged: true),
    "PUT /v1/managed-settings": .change(
      "Replaces the configuration profile of the devices", .managedSettings, .managedSettings, problems: [.conflict]),
    "GET /v1/policy": .show("The policy in force", .policyInForce, tagged: true),
    "POST /v1/policy:simulate": .act(
      "What a policy would decide", .simulationRequest, .simulation, problems: [.notFound]),
    "GET /v1/revisions": .list("Lists what held when, the newest first", .pageOfRevisions),
    "GET /v1/revisions/{id}": .show("Shows a revision", .revision),
    "POST /v1/revisions/{id}/restore": .change(
      "Makes an earlier revision the policy again", nil, .newRevision, problems: [.conflict, .policyTooLarge]),
    "GET /v1/drafts": .list("Lists drafts, without their contents", .pageOfDrafts),
    "POST /v1/drafts": .make("Prepares a policy", .newDraft, .draft, problems: [.conflict]),
    "GET /v1/drafts/{id}": .show("Shows a draft", .draft, tagged: true),
    "PUT /v1/drafts/{id}": .change("Changes a draft", .newDraft, .draft),
    "DELETE /v1/drafts/{id}": .remove("Removes a draft"),
    "POST /v1/drafts/{id}/publish": .change(
      "Makes a draft the policy", nil, .newRevision, problems: [.conflict, .policyTooLarge]),
  ]

  private static let resources: Table = [
    named("/v1/rules", "rule", .pageOfRules, .rule),
    named("/v1/classifications", "classification", .pageOfClassifications, .classification),
    named("/v1/file-types", "file type", .pageOfFileTypes, .fileType),
    named("/v1/groups", "group of devices", .pageOfGroups, .group),
  ].reduce(into: [:]) { all, part in all.merge(part) { first, _ in first } }

  /// The five routes of what a company names itself.
  private static func named(_ path: String, _ what: String, _ page: Schemas.Name, _ one: Schemas.Name) -> Table {
    [
      "GET \(path)": .list("Lists: \(what)", page),
      "POST \(path)": .make(
        "Makes a \(what)", one, one, problems: [.alreadyExists, .conflict, .policyTooLarge, .forbidden]),
      "GET \(path)/{id}": .show("Shows a \(what)", one, tagged: true),
      "PUT \(path)/{id}": .change(
        "Changes a \(what)", one, one, problems: [.conflict, .policyTooLarge, .forbidden]),
      ["DELETE", "\(path)/{id}"].joined(separator: " "): .remove(
        "Removes a \(what)", problems: [.invalidFields, .conflict]),
    ]
  }

  private static let keysAndAudit: Table = [
    "GET /v1/keys": .show("The company's keys", .keys, tagged: true),
    "POST /v1/keys/rotate": .change("Takes a new signing key, in a new epoch", nil, .keys),
    "POST /v1/keys/delegations": .change("Lets the root sign a key for wipes or escrow", .newDelegation, .keys),
    "POST /v1/keys/root-export": .act(
      "Hands out the root key, once", .rootExportRequest, .rootExport,
      problems: [.signInRefused, .conflict, .tooManyRequests]),
    "GET /v1/audit": .list("Lists what was done", .pageOfAuditEntries),
    "GET /v1/audit/checkpoint": .show("How far the audit reaches, signed", .checkpoint),
    "GET /v1/audit/export": .show("The whole audit with a signed end, as JSON Lines", nil),
  ]

  private static let devices: Table = [
    "GET /v1/devices": .list("Lists devices", .pageOfDevices),
    "GET /v1/devices/{id}": .show("Shows a device", .device, tagged: true),
    "PUT /v1/devices/{id}": .change("Sets a device's groups", .deviceGroups, .device),
    "DELETE /v1/devices/{id}": .remove("Withdraws a device's access", .none, problems: [.conflict]),
    "GET /v1/devices/{id}/commands": .list("Lists a device's orders", .pageOfCommands),
    "POST /v1/devices/{id}/commands": .make(
      "Orders a device to do something", .newCommand, .command, problems: [.conflict]),
    "DELETE /v1/devices/{id}/commands/{command}": .remove("Takes an order back", .none, problems: [.conflict]),
    "GET /v1/devices/{id}/log": .show("Shows the log that a device uploaded", .deviceLog),
    "GET /v1/devices/{id}/decisions": .list("Lists what a device decided", .pageOfDecisions),
    "GET /v1/enrollments": .list("Lists codes that nobody used", .pageOfEnrollments),
    "POST /v1/enrollments": .make("Makes a code for one device", .newEnrollment, .enrollment),
    "DELETE /v1/enrollments/{id}": .remove("Withdraws a code", .none),
  ]

  private static let deviceSide: Table = [
    "GET /v1/device/policy": .show("The signed policy", .signedPolicy, tagged: true),
    "POST /v1/device/status": .act("What holds now, signed over a nonce", .statusRequest, .signedStatus),
    "GET /v1/device/events": .show("A stream of server-sent events, which only wake", nil),
    "GET /v1/device/commands": .show("Orders that wait, signed", .orders),
    "PUT /v1/device/log": .act("Takes the device's log", .newDeviceLog, problems: [.conflict]),
    "PUT /v1/device/report": .act("Takes what the device says of itself", .deviceReport, problems: [.conflict]),
    "POST /v1/device/decisions": .act("Takes what the device decided", .decisions, .decisionsReceipt),
  ]
}
