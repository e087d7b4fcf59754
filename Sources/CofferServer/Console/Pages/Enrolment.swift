internal import CofferPolicy
internal import Hummingbird

/// Codes by which devices join.
extension Console {
  var enrolment: [ConsoleRoute] {
    [
      .page("/console/enrolment", .readDevices, enrolmentPage),
      .change("/console/enrolment", .manageDevices, on: enrolmentPage, makeCode),
      .change("/console/enrolment/:id/revoke", .manageDevices, on: enrolmentPage, revokeCode),
    ]
  }

  @Sendable private func enrolmentPage(_ visit: Visit) async throws -> ConsolePage {
    let tenant = try visit.person().administrator.tenant
    let codes = try await store.read {
      try $0.unusedEnrollments(tenant: tenant, now: visit.now, after: 0, limit: PageRequest.maximum)
    }
    return ConsolePage("Enrolment", in: .enrolment) {
      Tag.p {
        "A device joins your company with a code. Each code works once, for one device, and tells the device your "
          + "company’s server from any other."
      }
      if visit.may(.manageDevices) {
        let form = Form(visit, "/console/enrolment")
        Tag.section(.class("panel"), .aria(.labelledby, "make")) {
          Tag.h2(.id("make")) { "Make a code" }
          form("Make an enrolment code") {
            form.select(
              "Valid for", "expiresIn",
              [("3600", "An hour", nil), ("86400", "A day", nil), ("604800", "A week", nil)], chosen: "86400")
          }
        }
      }
      Tag.section(.class("panel"), .aria(.labelledby, "unused")) {
        Tag.h2(.id("unused")) { "Codes that nobody has used" }
        Tag.div(.id("live-codes"), .data(.live, "")) {
          if codes.isEmpty {
            Tag.p(.class("empty")) { "There is none. Make a code, and give it to the person with the device." }
          } else {
            DataTable.table("Unused codes", ["Code", "Made", "Ends", "Withdraw"]) {
              for (_, code) in codes {
                Tag.tr {
                  DataTable.head { "Code \(code.id.prefix(8))" }
                  DataTable.cell("Made") { Words.time(code.createdAt) }
                  DataTable.cell("Ends") { Words.time(code.expiresAt) }
                  DataTable.cell("Withdraw") {
                    if visit.may(.manageDevices) {
                      Form(visit, "/console/enrolment/\(code.id)/revoke")(
                        "Withdraw code \(code.id.prefix(8))", style: "plain"
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
      }
    }
  }

  private struct Made: Decodable {
    let code: String
    let expiresAt: Int64
  }

  @Sendable private func makeCode(_ visit: Visit) async throws -> Outcome {
    let seconds = Int64(visit.values.exact("expiresIn")) ?? 0
    let answer = try await server.createEnrollment(
      visit.asking(.object(["expiresIn": .integer(seconds)])), visit.caller())
    let made = try await answer.decoded(Made.self)
    return .show(
      ConsolePage("Enrolment code", in: .enrolment) {
        Tag.section(.class("panel"), .aria(.labelledby, "code-title")) {
          Tag.h2(.id("code-title")) { "Shown once: hand it on now" }
          // Upper case makes a smaller picture, and devices read either.
          QRCode.picture(of: made.code.uppercased(), label: "The enrolment code as a picture to scan")
          Tag.p { "The code, as text:" }
          SecretText.html(made.code)
          Tag.p {
            "On the device, the first of these makes a vault, if there is none yet. The second joins your company with "
              + "it. The third unlocks it and keeps it connected, so that changes and orders reach it at once:"
          }
          Tag.ol {
            Tag.li { Tag.code { "coffer init" } }
            Tag.li { Tag.code { "coffer enroll \(address(visit) ?? "SERVER") \(made.code)" } }
            Tag.li { Tag.code { "coffer unlock" } }
          }
          Tag.p {
            "It works once, until "
            Words.time(made.expiresAt)
            ". Whoever has it can make one device a device of your company. When you leave this page it is gone; if it "
              + "got lost, withdraw it and make another."
          }
          Tag.p(.class("buttons")) {
            Tag.a(.class("button"), .href("/console/enrolment")) { "I have handed it on" }
            Tag.a(.class("button plain"), .href("/console/devices")) { "Wait for the device to appear" }
          }
        }
      })
  }

  @Sendable private func revokeCode(_ visit: Visit) async throws -> Outcome {
    _ = try await server.revokeEnrollment(visit.asking(), visit.caller())
    return .see("/console/enrolment", .codeRevoked)
  }
}

/// A secret that is shown once.
enum SecretText {
  static func html(_ text: String) -> HTML {
    Tag.p(.class("secret")) {
      Tag.code(.id("secret"), .tabIndex(0)) { text }
      Tag.button(.type("button"), .class("plain"), .data(.copy, "secret")) { "Copy" }
    }
  }
}
