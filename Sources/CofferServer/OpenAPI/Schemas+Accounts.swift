extension Schemas {
  private static let email = Schema.text(minimum: 3, maximum: 200)
  /// Long enough to be none of the first that somebody would try.
  private static let newPassword = Schema.text(maximum: 1024)

  static let accounts: [Name: Schema] = [
    .pageOfAdministrators: page(of: .administrator),
    .administrator: .object([
      "id": id, "email": .text(), "role": role, "hasSecondFactor": .boolean, "createdAt": time,
    ]),
    .roleBody: .object(["role": role]),
    .pageOfInvitations: page(of: .invitation),
    .invitation: .object(
      ["id": id, "role": role, "createdAt": time, "expiresAt": time],
      optional: ["email": .text(), "link": .text("Only in the answer that makes it.")]),
    .newInvitation: .object(["email": email, "role": role]),
    .setUp: .object(
      ["token": .text("The secret of the link."), "password": newPassword],
      optional: ["company": shortText, "email": email]),
    .account: .object(["administrator": id, "tenant": id, "company": .text(), "email": .text()]),
    .signIn: .object(["company": .text(), "email": .text(), "password": .text()], optional: ["code": .text()]),
    .session: .object([
      "administrator": id, "tenant": id, "email": .text(), "role": role, "permissions": permissions,
      "hasSecondFactor": .boolean, "csrfToken": .text("To be sent as X-CSRF-Token."), "expiresAt": time,
    ]),
    .newPassword: .object(["current": .text(), "new": newPassword]),
    .password: .object(["password": .text()]),
    .secondFactor: .object(["secret": .text("In base32."), "uri": .text("For a QR code.")]),
    .oneTimeCode: .object(["code": .text()]),
    .pageOfTokens: page(of: .token),
    .token: .object(
      [
        "id": id, "name": .text(), "role": role, "scopes": .list(of: .choice(of: Permission.self)), "createdAt": time,
        "expiresAt": time,
      ], optional: ["token": .text("Only in the answer that makes it.")]),
    .newToken: .object(
      [
        "name": .text(maximum: 200), "role": role,
        "expiresIn": .integer(
          "Seconds.", minimum: Administration.tokenLifetimes.lowerBound,
          maximum: Administration.tokenLifetimes.upperBound),
      ], optional: ["scopes": permissions]),
  ]
}
