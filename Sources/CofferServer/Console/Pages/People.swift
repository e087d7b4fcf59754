internal import CofferPolicy
internal import Foundation
internal import Hummingbird

/// Administrators, invitations and API tokens.
extension Console {
  var people: [ConsoleRoute] {
    [
      .page("/console/people", .readAccounts, peoplePage),
      .change("/console/people/invite", .manageAccounts, on: peoplePage, invite),
      .change("/console/people/invitations/:id/revoke", .manageAccounts, on: peoplePage, revokeInvitation),
      .change("/console/people/:id/role", .manageAccounts, on: peoplePage, changeRole),
      .change("/console/people/:id/remove", .manageAccounts, on: peoplePage, removePerson),
      .change("/console/tokens", .manageAccounts, on: peoplePage, makeToken),
      .change("/console/tokens/:id/revoke", .manageAccounts, on: peoplePage, revokeToken),
    ]
  }

  private static let roles: [Form.Choice] = Role.allCases.reversed()
    .map { ($0.rawValue, Words.role($0).capitalized, Words.meaning(of: $0)) }

  private struct Accounts: Sendable {
    let people: [Administrator]
    let invitations: [Invitation]
    let tokens: [APIToken]
  }

  @Sendable private func peoplePage(_ visit: Visit) async throws -> ConsolePage {
    let tenant = try visit.person().administrator.tenant
    let accounts = try await store.read { transaction in
      Accounts(
        people: try transaction.administrators(tenant: tenant, after: 0, limit: 1_000).map(\.value),
        invitations: try transaction.invitations(tenant: tenant, now: visit.now, after: 0, limit: 1_000).map(\.value),
        tokens: try transaction.apiTokens(tenant: tenant, after: 0, limit: 1_000).map(\.value))
    }
    return ConsolePage("People and tokens", in: .people) {
      Tag.div(.id("live-people"), .data(.live, "")) {
        list(accounts.people, visit)
        if !accounts.invitations.isEmpty { list(accounts.invitations, visit) }
      }
      if visit.may(.manageAccounts) { inviteForm(visit) }
      list(accounts.tokens, visit)
      if visit.may(.manageAccounts) { tokenForm(visit) }
    }
  }

  private func list(_ people: [Administrator], _ visit: Visit) -> HTML {
    Tag.section(.class("panel"), .aria(.labelledby, "people")) {
      Tag.h2(.id("people")) { "Administrators" }
      DataTable.table("Administrators", ["Address", "Role", "Sign-in", "Change"]) {
        for person in people {
          Tag.tr {
            DataTable.head { person.email }
            DataTable.cell("Role") { Words.role(person.role) }
            DataTable.cell("Sign-in") {
              person.sealedOneTimeSecret == nil ? "Password alone" : "Password and one-time code"
            }
            DataTable.cell("Change") {
              if visit.may(.manageAccounts) {
                change(person, visit)
              } else {
                "–"
              }
            }
          }
        }
      }
    }
  }

  private func change(_ person: Administrator, _ visit: Visit) -> HTML {
    let tag = PolicyServer.AdministratorView(person).tag
    let role = Form(visit, "/console/people/\(person.id)/role")
    return Tag.details {
      Tag.summary { "Change \(person.email)" }
      role("Change the role", match: tag) {
        role.radios("Role", "role", Self.roles, chosen: person.role.rawValue)
      }
      Form(visit, "/console/people/\(person.id)/remove")("Remove \(person.email)", match: tag, style: "danger") {}
    }
  }

  private func list(_ invitations: [Invitation], _ visit: Visit) -> HTML {
    Tag.section(.class("panel"), .aria(.labelledby, "invitations")) {
      Tag.h2(.id("invitations")) { "Invitations that nobody has used" }
      DataTable.table("Invitations", ["Address", "Role", "Ends", "Withdraw"]) {
        for invitation in invitations {
          let email = invitation.email ?? ""
          Tag.tr {
            DataTable.head { email }
            DataTable.cell("Role") { Words.role(invitation.role) }
            DataTable.cell("Ends") { Words.time(invitation.expiresAt) }
            DataTable.cell("Withdraw") {
              if visit.may(.manageAccounts) {
                Form(visit, "/console/people/invitations/\(invitation.id)/revoke")(
                  "Withdraw the invitation of \(email)", style: "plain"
                ) {}
              } else {
                "–"
              }
            }
          }
        }
      }
    }
  }

  private func inviteForm(_ visit: Visit) -> HTML {
    let form = Form(visit, "/console/people/invite")
    return Tag.section(.class("panel"), .aria(.labelledby, "invite")) {
      Tag.h2(.id("invite")) { "Invite somebody" }
      Tag.p { "You get a link to hand on. It works once, for three days." }
      form("Make the link") {
        form.text("E-mail address", "email", kind: .email)
        form.radios("Role", "role", Self.roles, chosen: Role.auditor.rawValue)
      }
    }
  }

  private func list(_ tokens: [APIToken], _ visit: Visit) -> HTML {
    Tag.section(.class("panel"), .aria(.labelledby, "tokens")) {
      Tag.h2(.id("tokens")) { "Tokens" }
      if tokens.isEmpty {
        Tag.p(.class("empty")) { "There is none. A token lets a program use the API in your company’s name." }
      } else {
        DataTable.table("Tokens", ["Token", "May", "Ends", "Withdraw"]) {
          for token in tokens {
            let name = token.name.isEmpty ? "Token \(token.id.prefix(8))" : token.name
            Tag.tr {
              DataTable.head { name }
              DataTable.cell("May") { token.permissions.map(\.rawValue).sorted().joined(separator: ", ") }
              DataTable.cell("Ends") {
                Words.time(token.expiresAt)
                if token.expiresAt <= visit.now { " – over" }
              }
              DataTable.cell("Withdraw") {
                if visit.may(.manageAccounts) {
                  Form(visit, "/console/tokens/\(token.id)/revoke")("Withdraw “\(name)”", style: "plain") {}
                } else {
                  "–"
                }
              }
            }
          }
        }
      }
    }
  }

  private func tokenForm(_ visit: Visit) -> HTML {
    let form = Form(visit, "/console/tokens")
    return Tag.section(.class("panel"), .aria(.labelledby, "make-token")) {
      Tag.h2(.id("make-token")) { "Make a token" }
      form("Make the token") {
        form.text("Name", "name", hint: "What it is for.")
        form.radios("Role", "role", Self.roles, chosen: Role.auditor.rawValue)
        form.checkboxes(
          "Limited to", "scopes", Permission.allCases.map { ($0.rawValue, $0.rawValue, Words.meaning(of: $0)) },
          chosen: [],
          hint: "None chosen: all that the role may do.")
        form.select(
          "Valid for", "expiresIn",
          [("604800", "A week", nil), ("7776000", "90 days", nil), ("31536000", "A year", nil)], chosen: "7776000")
      }
    }
  }

  private struct Invited: Decodable { let link: String }
  private struct Issued: Decodable { let token: String }

  @Sendable private func invite(_ visit: Visit) async throws -> Outcome {
    try visit.demand("email")
    let body = JSONValue.object([
      "email": .string(visit.values.text("email") ?? ""), "role": .string(visit.values.exact("role")),
    ])
    let link = try await server.createInvitation(visit.asking(body), visit.caller()).decoded(Invited.self).link
    return .show(
      ConsolePage("Invitation", in: .people) {
        Tag.section(.class("panel"), .aria(.labelledby, "once")) {
          Tag.h2(.id("once")) { "Shown once: hand it on now" }
          Tag.p {
            "Give this link to \(visit.values.text("email") ?? "") and to nobody else: whoever opens it first gets the account."
          }
          SecretText.html("\(address(visit) ?? "")\(link)")
          Tag.p { Tag.a(.class("button"), .href("/console/people")) { "I have handed it on" } }
        }
      })
  }

  @Sendable private func makeToken(_ visit: Visit) async throws -> Outcome {
    try visit.demand("name")
    let (values, scopes) = (visit.values, visit.values.all("scopes"))
    let body = JSONValue.fields([
      "name": .string(values.text("name") ?? ""), "role": .string(values.exact("role")),
      "scopes": scopes.isEmpty ? nil : .texts(scopes), "expiresIn": .integer(Int64(values.exact("expiresIn")) ?? 0),
    ])
    let token = try await server.createToken(visit.asking(body), visit.caller()).decoded(Issued.self).token
    return .show(
      ConsolePage("Token", in: .people) {
        Tag.section(.class("panel"), .aria(.labelledby, "once")) {
          Tag.h2(.id("once")) { "Shown once: put it where the program finds it" }
          Tag.p { "Programs send it as “Authorization: Bearer”. Whoever has it may do what it may do." }
          SecretText.html(token)
          Tag.p { Tag.a(.class("button"), .href("/console/people")) { "I have stored it" } }
        }
      })
  }

  @Sendable private func revokeInvitation(_ visit: Visit) async throws -> Outcome {
    _ = try await server.revokeInvitation(visit.asking(), visit.caller())
    return .see("/console/people", .invitationRevoked)
  }

  @Sendable private func changeRole(_ visit: Visit) async throws -> Outcome {
    let body = JSONValue.object(["role": .string(visit.values.exact("role"))])
    _ = try await server.changeAdministrator(visit.asking(body), visit.caller())
    return .see("/console/people", .changed)
  }

  @Sendable private func removePerson(_ visit: Visit) async throws -> Outcome {
    _ = try await server.removeAdministrator(visit.asking(), visit.caller())
    return .see("/console/people", .removed)
  }

  @Sendable private func revokeToken(_ visit: Visit) async throws -> Outcome {
    _ = try await server.revokeToken(visit.asking(), visit.caller())
    return .see("/console/people", .tokenRevoked)
  }
}
