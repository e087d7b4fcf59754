/// What somebody gave others does not outlive the power to give it: whoever is removed would come back by it.
extension Change {
  /// Withdraws the tokens, invitations and unused codes that `actor` made, as far as they reach beyond `permissions`; and
  /// so on with what those tokens made.
  func withdrawGrants(of actor: Actor, beyond permissions: Set<Permission>) throws {
    let maker = actor.description
    for token in try transaction.apiTokens(tenant: tenant, createdBy: maker) {
      if token.permissions.isSubset(of: permissions) {
        try withdrawGrants(of: .token(token.id), beyond: permissions)
      } else {
        try withdraw(token, beyond: permissions)
      }
    }
    for invitation in try transaction.invitations(tenant: tenant, createdBy: maker)
    where !invitation.role.permissions.isSubset(of: permissions) {
      _ = try transaction.deleteInvitation(tenant: tenant, id: invitation.id)
      try record(.invitationRevoked, invitation.id)
    }
    guard !permissions.contains(.manageDevices) else { return }
    for enrollment in try transaction.unusedEnrollments(tenant: tenant, createdBy: maker) {
      _ = try transaction.deleteUnusedEnrollment(tenant: tenant, id: enrollment.id)
      try record(.enrollmentRevoked, enrollment.id)
    }
  }

  /// Withdraws a token with what it made beyond `permissions`. No token makes itself, so that this ends.
  func withdraw(_ token: APIToken, beyond permissions: Set<Permission> = []) throws {
    _ = try transaction.deleteAPIToken(tenant: tenant, id: token.id)
    try record(.tokenRevoked, token.id)
    try withdrawGrants(of: .token(token.id), beyond: permissions)
  }
}
