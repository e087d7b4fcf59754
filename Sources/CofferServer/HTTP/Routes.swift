internal import CofferPolicy
internal import Hummingbird

/// Everything that the server answers, and who may call it. There is no other place where a route comes from.
extension PolicyServer {
  private static let small = Route.Body.json(limit: 8 << 10)
  private static let medium = Route.Body.json(limit: 64 << 10)
  private static let large = Route.Body.json(limit: 1 << 20)

  var routes: [Route] {
    publicRoutes + accountRoutes + appRoutes + policyRoutes + keyAndAuditRoutes + inventoryRoutes + deviceRoutes
  }

  /// For whoever carries the proof in the request itself, or for everybody.
  private var publicRoutes: [Route] {
    [
      Route(.get, "/health", .anyone(showHealth)),
      Route(.get, "/ready", .anyone(showReadiness)),
      Route(.get, "/metrics", answer: .text, .anyone(showMetrics)),
      Route(.get, "/v1/openapi.json", .anyone(showOpenAPI)),
      Route(.post, "/v1/setup", body: Self.small, .anyone(setUp)),
      Route(.post, "/v1/session", body: Self.small, .anyone(signIn)),
      Route(.post, "/v1/enroll", body: Self.small, .anyone(enroll)),
      Route(.post, "/v1/device/token", body: .form(limit: 8 << 10), .anyone(issueDeviceToken)),
      Route(.post, "/v1/device/receipts", body: Self.small, .anyone(takeReceipt)),
    ]
  }

  private var accountRoutes: [Route] {
    [
      Route(.get, "/v1/session", .person(nil, showSession)),
      Route(.delete, "/v1/session", .person(nil, signOut)),
      Route(.put, "/v1/session/password", body: Self.small, .person(nil, changePassword)),
      Route(.post, "/v1/session/second-factor", body: Self.small, .person(nil, prepareSecondFactor)),
      Route(.put, "/v1/session/second-factor", body: Self.small, .person(nil, confirmSecondFactor)),
      Route(.delete, "/v1/session/second-factor", body: Self.small, .person(nil, removeSecondFactor)),

      Route(.get, "/v1/administrators", .administration(.readAccounts, listAdministrators)),
      Route(.get, "/v1/administrators/:id", .administration(.readAccounts, showAdministrator)),
      Route(.put, "/v1/administrators/:id", body: Self.small, .administration(.manageAccounts, changeAdministrator)),
      Route(.delete, "/v1/administrators/:id", .administration(.manageAccounts, removeAdministrator)),
      Route(.get, "/v1/invitations", .administration(.readAccounts, listInvitations)),
      Route(.post, "/v1/invitations", body: Self.small, .administration(.manageAccounts, createInvitation)),
      Route(.delete, "/v1/invitations/:id", .administration(.manageAccounts, revokeInvitation)),
      Route(.get, "/v1/tokens", .administration(.readAccounts, listTokens)),
      Route(.post, "/v1/tokens", body: Self.small, .administration(.manageAccounts, createToken)),
      Route(.delete, "/v1/tokens/:id", .administration(.manageAccounts, revokeToken)),
    ]
  }

  private var appRoutes: [Route] {
    [
      Route(.get, "/items", .administration(.readPolicy, listItems)),
      Route(.post, "/items", body: Self.medium, .administration(.changePolicy, createItem)),
      Route(.get, "/items/:id", .administration(.readPolicy, showItem)),
      Route(.put, "/items/:id", body: Self.medium, .administration(.changePolicy, replaceItem)),
      Route(.delete, "/items/:id", .administration(.changePolicy, deleteItem)),

      Route(.get, "/v1/apps", .administration(.readPolicy, listApps)),
      Route(.post, "/v1/apps", body: Self.medium, .administration(.changePolicy, requestApp)),
      Route(.get, "/v1/apps/:id", .administration(.readPolicy, showApp)),
      Route(.put, "/v1/apps/:id", body: Self.medium, .administration(.changePolicy, changeApp)),
      Route(.delete, "/v1/apps/:id", .administration(.changePolicy, removeApp)),
      Route(.post, "/v1/apps/:id/approve", body: Self.small, .administration(.changePolicy, approveApp)),
      Route(.post, "/v1/apps/:id/revoke", body: Self.small, .administration(.changePolicy, revokeApp)),
      Route(.get, "/v1/approval-settings", .administration(.readPolicy, showApprovalSettings)),
      // Whoever approves must not be able to do away with the second person.
      Route(
        .put, "/v1/approval-settings", body: Self.small, .administration(.manageAccounts, changeApprovalSettings)),
    ]
  }

  private var policyRoutes: [Route] {
    [
      Route(.get, "/v1/settings", .administration(.readPolicy, showSettings)),
      Route(.put, "/v1/settings", body: Self.small, .administration(.changePolicy, replaceSettings)),
      Route(.get, "/v1/managed-settings", .administration(.readPolicy, showManagedSettings)),
      Route(.put, "/v1/managed-settings", body: Self.small, .administration(.changePolicy, replaceManagedSettings)),
      Route(.get, "/v1/grace", .administration(.readPolicy, showGrace)),
      Route(.put, "/v1/grace", body: Self.small, .administration(.changePolicy, replaceGrace)),

      Route(.get, "/v1/policy", .administration(.readPolicy, showPolicyContent)),
      Route(.post, "/v1/policy:simulate", body: Self.medium, .administration(.readPolicy, simulate)),
      Route(.get, "/v1/revisions", .administration(.readPolicy, listRevisions)),
      Route(.get, "/v1/revisions/:id", .administration(.readPolicy, showRevision)),
      Route(.post, "/v1/revisions/:id/restore", .administration(.changePolicy, restoreRevision)),
      Route(.get, "/v1/drafts", .administration(.readPolicy, listDrafts)),
      Route(.post, "/v1/drafts", body: Self.large, .administration(.changePolicy, createDraft)),
      Route(.get, "/v1/drafts/:id", .administration(.readPolicy, showDraft)),
      Route(.put, "/v1/drafts/:id", body: Self.large, .administration(.changePolicy, changeDraft)),
      Route(.delete, "/v1/drafts/:id", .administration(.changePolicy, removeDraft)),
      Route(.post, "/v1/drafts/:id/publish", .administration(.changePolicy, publishDraft)),
    ]
      + resources(Rule.self, "/v1/rules", write: .changePolicy)
      + resources(Classification.self, "/v1/classifications", write: .changePolicy)
      + resources(FileType.self, "/v1/file-types", write: .changePolicy)
      + resources(DeviceGroup.self, "/v1/groups", read: .readDevices, write: .manageDevices)
  }

  private func resources<Resource: NamedResource>(
    _ type: Resource.Type, _ path: String, read: Permission = .readPolicy, write: Permission
  ) -> [Route] {
    let routes = ResourceRoutes<Resource>(server: self, path: path)
    let (all, one) = (RouterPath(path), RouterPath("\(path)/:id"))
    return [
      Route(.get, all, .administration(read, routes.list)),
      Route(.post, all, body: Self.medium, .administration(write, routes.make)),
      Route(.get, one, .administration(read, routes.show)),
      Route(.put, one, body: Self.medium, .administration(write, routes.replace)),
      Route(.delete, one, .administration(write, routes.remove)),
    ]
  }

  private var keyAndAuditRoutes: [Route] {
    [
      Route(.get, "/v1/keys", .administration(.readPolicy, showKeys)),
      Route(.post, "/v1/keys/rotate", .administration(.manageKeys, rotateKeys)),
      Route(.post, "/v1/keys/delegations", body: Self.small, .administration(.manageKeys, delegateKey)),
      Route(.post, "/v1/keys/root-export", body: Self.small, .person(.manageKeys, exportRootKey)),
      Route(.get, "/v1/audit", .administration(.readAudit, listAudit)),
      Route(.get, "/v1/audit/checkpoint", .administration(.readAudit, showCheckpoint)),
      Route(.get, "/v1/audit/export", answer: .lines, .administration(.readAudit, exportAudit)),
    ]
  }

  private var inventoryRoutes: [Route] {
    [
      Route(.get, "/v1/devices", .administration(.readDevices, listDevices)),
      Route(.get, "/v1/devices/:id", .administration(.readDevices, showDevice)),
      Route(.put, "/v1/devices/:id", body: Self.small, .administration(.manageDevices, changeDevice)),
      Route(.delete, "/v1/devices/:id", .administration(.manageDevices, removeDevice)),
      Route(.get, "/v1/devices/:id/commands", .administration(.readDevices, listCommands)),
      Route(.post, "/v1/devices/:id/commands", body: Self.small, .administration(.manageDevices, createCommand)),
      Route(.delete, "/v1/devices/:id/commands/:command", .administration(.manageDevices, cancelCommand)),
      Route(.get, "/v1/devices/:id/decisions", .administration(.readDevices, listDecisions)),
      Route(.get, "/v1/devices/:id/log", .administration(.readDevices, showDeviceLog)),
      Route(.get, "/v1/enrollments", .administration(.readDevices, listEnrollments)),
      Route(.post, "/v1/enrollments", body: Self.small, .administration(.manageDevices, createEnrollment)),
      Route(.delete, "/v1/enrollments/:id", .administration(.manageDevices, revokeEnrollment)),
    ]
  }

  /// For enrolled devices.
  private var deviceRoutes: [Route] {
    [
      Route(.get, "/v1/device/policy", .device(showPolicy)),
      Route(.post, "/v1/device/status", body: .json(limit: 1 << 10), .device(showStatus)),
      Route(.get, "/v1/device/events", answer: .events, .device(streamEvents)),
      Route(.get, "/v1/device/commands", .device(showCommands)),
      Route(.put, "/v1/device/report", body: Self.small, .device(takeReport)),
      Route(.put, "/v1/device/log", body: Self.large, .device(takeDeviceLog)),
      Route(.post, "/v1/device/decisions", body: Self.large, .device(takeDecisions)),
    ]
  }
}
