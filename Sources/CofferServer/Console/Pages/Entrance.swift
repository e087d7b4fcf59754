internal import CofferPolicy
internal import CofferSystem
internal import HTTPTypes
internal import Hummingbird
internal import NIOCore

/// How somebody gets in: the set-up by a link, signing in, signing out.
extension Console {
  var entrance: [ConsoleRoute] {
    [
      ConsoleRoute(method: .get, path: "/console/sign-in", access: .open(signInPage)),
      ConsoleRoute(
        method: .post, path: "/console/sign-in", access: .openChange(.init(perform: signIn, page: signInPage))),
      ConsoleRoute(method: .get, path: "/setup", access: .open(linkPage)),
      ConsoleRoute(method: .post, path: "/setup", access: .openChange(.init(perform: openLink, page: linkPage))),
      ConsoleRoute(
        method: .post, path: "/setup/account",
        access: .openChange(.init(perform: setUp, page: setUpPage))),
      .change("/console/sign-out", nil, on: signInPage, signOut),
    ]
  }

  @Sendable private func signInPage(_ visit: Visit) async throws -> ConsolePage {
    let form = Form(visit, "/console/sign-in")
    return ConsolePage("Sign in") {
      Tag.p { "This is where your company decides which apps may get its files, and on which devices." }
      form("Sign in") {
        form.text("Company", "company", autocomplete: "organization")
        form.text("E-mail address", "email", kind: .email, autocomplete: "username")
        form.text("Password", "password", kind: .password, autocomplete: "current-password")
        form.text(
          "One-time code", "code", kind: .code, hint: "From your authenticator app, if you added one.", optional: true,
          autocomplete: "one-time-code")
      }
      Tag.p(.class("hint")) {
        "No account yet? The first administrator follows the link that the server prints when it starts; everybody "
          + "else gets an invitation from an owner of the company."
      }
    }
  }

  @Sendable private func signIn(_ visit: Visit) async throws -> Outcome {
    try await enter(
      visit, company: visit.values.text("company") ?? "", email: visit.values.text("email") ?? "",
      code: visit.values.text("code")?.filter { $0 != " " })
  }

  private func enter(_ visit: Visit, company: String, email: String, code: String?) async throws -> Outcome {
    let (secret, _, _) = try await server.signIn(
      company: company, email: email, password: PolicyServer.secret(visit.values.exact("password")), code: code,
      address: visit.call.address)
    return .leave("/console", cookie: server.site.cookie.setting(secret))
  }

  @Sendable private func signOut(_ visit: Visit) async throws -> Outcome {
    _ = try await server.signOut(visit.asking(), visit.person())
    return .leave("/console/sign-in?done=signed-out", cookie: server.site.cookie.clearing)
  }

  @Sendable private func linkPage(_ visit: Visit) async throws -> ConsolePage {
    let form = Form(visit, "/setup")
    return ConsolePage("Set up your account") {
      Tag.p { "You got here by a link that makes one account. It works once." }
      Tag.div(.data(.fragment, "")) {
        form("Continue") {
          form.text(
            "Link", "token", kind: .text,
            hint: "If this is empty, paste the whole link here: the secret is what stands behind the #.")
        }
      }
    }
  }

  /// Shows the form of the link, before anything is used up.
  @Sendable private func openLink(_ visit: Visit) async throws -> Outcome {
    .show(try await setUpPage(visit))
  }

  @Sendable private func setUpPage(_ visit: Visit) async throws -> ConsolePage {
    let token = String((visit.values.text("token") ?? "").split(separator: "#").last ?? "")
    let invitation = try await server.invitation(token)
    let form = Form(visit, "/setup/account")
    let isFirst = invitation.tenant == nil
    return ConsolePage(isFirst ? "Set up this server" : "Set up your account") {
      if isFirst {
        Tag.p { "You are the first administrator. This makes your company and your account, which owns it." }
      } else {
        Tag.p { "Your account will be \(invitation.email ?? ""), \(Words.role(invitation.role))." }
      }
      form(isFirst ? "Make the company" : "Make the account") {
        form.hidden("token", token)
        if isFirst {
          form.text("Company", "company", hint: "Everybody signs in with this name.", autocomplete: "organization")
          form.text("Your e-mail address", "email", kind: .email, autocomplete: "username")
        }
        form.text(
          "Password", "password", kind: .password, hint: "12 characters or more. Several words are good.",
          autocomplete: "new-password")
        form.text("The same password again", "again", kind: .password, autocomplete: "new-password")
      }
    }
  }

  private struct SetUpAnswer: Decodable {
    let company: String
    let email: String
  }

  @Sendable private func setUp(_ visit: Visit) async throws -> Outcome {
    let values = visit.values
    try visit.demand("company", "email", "password")
    guard values.exact("password") == values.exact("again") else {
      throw HTTPProblem.invalid("again", "is not the same password")
    }
    let answer = try await server.setUp(
      visit.asking(
        .fields([
          "token": .string(values.exact("token")), "password": .string(values.exact("password")),
          "company": values.text("company").map { .string($0) }, "email": values.text("email").map { .string($0) },
        ])))
    let made = try await answer.decoded(SetUpAnswer.self)
    return try await enter(visit, company: made.company, email: made.email, code: nil)
  }
}
