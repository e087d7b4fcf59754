internal import CofferPolicy
internal import Hummingbird

/// What a company set for all its devices, and how it approves.
extension Console {
  var settings: [ConsoleRoute] {
    [
      .page("/console/settings", .readPolicy, settingsPage),
      .change("/console/settings/owner", .changePolicy, on: settingsPage, saveOwnerActions),
      .change("/console/settings/grace", .changePolicy, on: settingsPage, saveGrace),
      // Whoever approves must not be able to do away with the second person.
      .change("/console/settings/approvals", .manageAccounts, on: settingsPage, saveApprovals),
    ]
  }

  @Sendable private func settingsPage(_ visit: Visit) async throws -> ConsolePage {
    let id = try visit.person().administrator.tenant
    let tenant = try await store.read { try server.found($0.tenant(id: id)) }
    return ConsolePage("Settings", in: .settings) {
      owner(tenant, visit)
      grace(tenant, visit)
      approvals(tenant, visit)
    }
  }

  private func owner(_ tenant: Tenant, _ visit: Visit) -> HTML {
    let form = Form(visit, "/console/settings/owner")
    let settings = tenant.settings
    return Tag.section(.class("panel"), .aria(.labelledby, "owner")) {
      Tag.h2(.id("owner")) { "What the person with the device may do" }
      Tag.p { "This is about the person, without any app. Rules that forbid bind the person, too." }
      if visit.may(.changePolicy) {
        form("Save what the person may do", match: PolicyServer.tag(settings)) {
          form.checkboxes(
            "The person may", "ownerActions",
            Action.allCases.map { ($0.rawValue, Words.action($0).name, Words.action($0).meaning) },
            chosen: settings.ownerActions.map(\.rawValue), hint: Words.askedActions)
          form.checkbox(
            "Apps that are only a name may get files", "allowFilteredTier", settings.allowFilteredTier,
            hint: "The tier Filtered. Anybody can make an app with the name of another: allow it only while nothing "
              + "better can be had.")
        }
      } else {
        Tag.p { "The person may: \(Words.actions(settings.ownerActions))." }
        Tag.p { "Apps that are only a name get \(settings.allowFilteredTier ? "files" : "nothing")." }
      }
    }
  }

  private func grace(_ tenant: Tenant, _ visit: Visit) -> HTML {
    let form = Form(visit, "/console/settings/grace")
    return Tag.section(.class("panel"), .aria(.labelledby, "grace")) {
      Tag.h2(.id("grace")) { "Devices without news" }
      Tag.p {
        "A device that does not reach the server goes on by its last policy. After a while it warns the person, and "
          + "later it refuses everything until it has reached the server again."
      }
      if visit.may(.changePolicy) {
        form("Save the times", match: EntityTag(of: Response.encoded(tenant.grace))) {
          form.text("Warn after, in hours", "warnAfter", "\(tenant.grace.warnAfter / 3600)", kind: .number)
          form.text(
            "Refuse everything after, in hours", "blockAfter", "\(tenant.grace.blockAfter / 3600)", kind: .number)
        }
      } else {
        Tag.p {
          "It warns after \(tenant.grace.warnAfter / 3600) hours, and refuses after \(tenant.grace.blockAfter / 3600)."
        }
      }
    }
  }

  private func approvals(_ tenant: Tenant, _ visit: Visit) -> HTML {
    let form = Form(visit, "/console/settings/approvals")
    let current = PolicyServer.ApprovalSettings(twoPeople: tenant.needsTwoApprovers)
    return Tag.section(.class("panel"), .aria(.labelledby, "approvals")) {
      Tag.h2(.id("approvals")) { "Approvals" }
      if visit.may(.manageAccounts) {
        form("Save how approvals go", match: current.tag) {
          form.checkbox(
            "An approval takes two people", "twoPeople", tenant.needsTwoApprovers,
            hint: "Two administrators have to stand behind each app: one requests or approves it, another approves it. "
              + "One is enough to revoke.")
        }
      } else {
        Tag.p {
          tenant.needsTwoApprovers
            ? "An approval takes two people. Only an owner can change that."
            : "An approval takes one person. Only an owner can change that."
        }
      }
    }
  }

  @Sendable private func saveOwnerActions(_ visit: Visit) async throws -> Outcome {
    _ = try await server.replaceSettings(
      visit.asking(
        .object([
          "ownerActions": .texts(visit.values.all("ownerActions")),
          "allowFilteredTier": .boolean(visit.values.isOn("allowFilteredTier")),
        ])), visit.caller())
    return .see("/console/settings", .saved)
  }

  @Sendable private func saveGrace(_ visit: Visit) async throws -> Outcome {
    func seconds(_ name: String) throws -> JSONValue {
      guard let hours = visit.values.text(name).flatMap({ Int64($0) }), (1...87_600).contains(hours) else {
        throw HTTPProblem.invalid(name, "is a whole number of hours, from 1 to 87600")
      }
      return .integer(hours * 3600)
    }
    let body: JSONValue = .object(["warnAfter": try seconds("warnAfter"), "blockAfter": try seconds("blockAfter")])
    _ = try await server.replaceGrace(visit.asking(body), visit.caller())
    return .see("/console/settings", .saved)
  }

  @Sendable private func saveApprovals(_ visit: Visit) async throws -> Outcome {
    let body: JSONValue = .object(["twoPeople": .boolean(visit.values.isOn("twoPeople"))])
    _ = try await server.changeApprovalSettings(visit.asking(body), visit.caller())
    return .see("/console/settings", .changed)
  }
}
