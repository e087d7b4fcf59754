internal import CofferPolicy
internal import Hummingbird

/// A person's own account: password and one-time codes.
extension Console {
  var account: [ConsoleRoute] {
    [
      .page("/console/account", nil, accountPage),
      .change("/console/account/password", nil, on: accountPage, changePassword),
      .change("/console/account/factor", nil, on: accountPage, prepareFactor),
      .change("/console/account/factor/confirm", nil, on: accountPage, confirmFactor),
      .change("/console/account/factor/remove", nil, on: accountPage, removeFactor),
    ]
  }

  @Sendable private func accountPage(_ visit: Visit) async throws -> ConsolePage {
    let person = try visit.person().administrator
    return ConsolePage("Your account", in: .account) {
      Tag.p { "You are \(person.email), \(Words.role(person.role)). \(Words.meaning(of: person.role))" }
      Tag.section(.class("panel"), .aria(.labelledby, "factor")) {
        Tag.h2(.id("factor")) { "One-time codes" }
        if person.sealedOneTimeSecret == nil {
          let form = Form(visit, "/console/account/factor")
          Tag.p { "With an authenticator app, a password that somebody learned is not enough to sign in as you." }
          form("Add one-time codes") {
            form.text("Your password", "password", kind: .password, autocomplete: "current-password")
          }
        } else {
          let form = Form(visit, "/console/account/factor/remove")
          Tag.p { "Signing in asks for a code of your authenticator app." }
          form("Remove one-time codes", style: "danger") {
            form.text("Your password", "password", kind: .password, autocomplete: "current-password")
          }
        }
      }
      if visit.path.hasSuffix("/confirm") { confirmForm(visit) }
      Tag.section(.class("panel"), .aria(.labelledby, "password")) {
        let form = Form(visit, "/console/account/password")
        Tag.h2(.id("password")) { "Password" }
        Tag.p { "A new password ends all your sessions, this one too." }
        form("Change the password") {
          form.text("Present password", "current", kind: .password, autocomplete: "current-password")
          form.text(
            "New password", "password", kind: .password, hint: "12 characters or more.", autocomplete: "new-password")
          form.text("The new one again", "again", kind: .password, autocomplete: "new-password")
        }
      }
    }
  }

  private func confirmForm(_ visit: Visit) -> HTML {
    let form = Form(visit, "/console/account/factor/confirm")
    return form("Confirm") {
      form.text(
        "Code that the app shows now", "code", kind: .code, hint: "Six digits.", autocomplete: "one-time-code")
    }
  }

  private struct Factor: Decodable {
    let secret: String
    let uri: String
  }

  @Sendable private func prepareFactor(_ visit: Visit) async throws -> Outcome {
    let body = JSONValue.object(["password": .string(visit.values.exact("password"))])
    let factor = try await server.prepareSecondFactor(visit.asking(body), visit.person()).decoded(Factor.self)
    return .show(
      ConsolePage("Add one-time codes", in: .account) {
        Tag.section(.class("panel"), .aria(.labelledby, "scan")) {
          Tag.h2(.id("scan")) { "Scan this with your authenticator app" }
          QRCode.picture(of: factor.uri, label: "The secret for your authenticator app as a picture to scan")
          Tag.p { "Or enter this secret:" }
          SecretText.html(factor.secret)
          confirmForm(visit)
        }
      })
  }

  @Sendable private func confirmFactor(_ visit: Visit) async throws -> Outcome {
    let code = visit.values.exact("code").filter { $0 != " " }
    _ = try await server.confirmSecondFactor(visit.asking(.object(["code": .string(code)])), visit.person())
    return .see("/console/account", .factorAdded)
  }

  @Sendable private func removeFactor(_ visit: Visit) async throws -> Outcome {
    let body = JSONValue.object(["password": .string(visit.values.exact("password"))])
    _ = try await server.removeSecondFactor(visit.asking(body), visit.person())
    return .see("/console/account", .factorRemoved)
  }

  @Sendable private func changePassword(_ visit: Visit) async throws -> Outcome {
    let values = visit.values
    guard values.exact("password") == values.exact("again") else {
      throw HTTPProblem.invalid("again", "is not the same password")
    }
    let body = JSONValue.object([
      "current": .string(values.exact("current")), "new": .string(values.exact("password")),
    ])
    _ = try await server.changePassword(visit.asking(body), visit.person())
    return .leave("/console/sign-in?done=password-changed", cookie: server.site.cookie.clearing)
  }
}
