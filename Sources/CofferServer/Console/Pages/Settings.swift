internal import CofferPolicy
internal import Hummingbird

/// What a company set for all its devices, and how it approves.
extension Console {
  var settings: [ConsoleRoute] {
    [
      .page("/console/settings", .readPolicy, settingsPage),
      .change("/console/settings/owner", .changePolicy, on: settingsPage, saveOwnerActions),
      .change("/console/settings/grace", .changePolicy, on: settingsPage, saveGrace),
      .change("/console/settings/managed", .changePolicy, on: settingsPage, saveManaged),
      // Whoever approves must not be able to do away with the second person.
      .change("/console/settings/approvals", .manageAccounts, on: settingsPage, saveApprovals),
    ]
  }

  @Sendable private func settingsPage(_ visit: Visit) async throws -> ConsolePage {
    let id = try visit.person().administrator.tenant
    let tenant = try await store.read { try server.found($0.tenant(id: id)) }
    return ConsolePage("Settings", in: .settings) {
      if visit.may(.readDevices) {
        Tag.p {
          "All but the last of these are signed into the policy. Each device says which it follows: "
          Tag.a(.href("/console/settings/devices")) { "see what devices made of the settings" }
          "."
        }
      }
      owner(tenant, visit)
      grace(tenant, visit)
      managed(tenant, visit)
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
        form(
          "Save what the person may do", then: ["draft": "Put what the person may do into a draft"],
          match: PolicyServer.tag(settings)
        ) {
          SettingFields(form: form).owner(settings)
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
        form(
          "Save the times", then: ["draft": "Put the times into a draft"],
          match: PolicyServer.tag(tenant.grace)
        ) {
          SettingFields(form: form).grace(tenant.grace)
        }
      } else {
        Tag.p { "A device without news \(SettingWords.value(tenant.grace))." }
      }
    }
  }

  private func managed(_ tenant: Tenant, _ visit: Visit) -> HTML {
    let form = Form(visit, "/console/settings/managed")
    let values = tenant.settings.managed ?? [:]
    return Tag.section(.class("panel"), .aria(.labelledby, "managed")) {
      Tag.h2(.id("managed")) { "How devices are set" }
      Tag.p { "The configuration profile of your devices. What is not set here, the person decides." }
      if visit.may(.changePolicy) {
        form(
          "Save how devices are set", then: ["draft": "Put how devices are set into a draft"],
          match: PolicyServer.tag(managed: tenant.settings)
        ) {
          ManagedFields(form: form, values: values).html
        }
      } else {
        PolicyFacts.managed(values)
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
    let settings = try SettingFields.owner(visit)
    if visit.isForDraft {
      return try await prepare("What the person may do", visit, inPlaceOf: inForce { PolicyServer.tag($0.settings) }) {
        $0.setOwner(settings)
      }
    }
    _ = try await server.replaceSettings(visit.asking(JSONValue(encoding: settings)), visit.caller())
    return .see("/console/settings", .saved)
  }

  @Sendable private func saveGrace(_ visit: Visit) async throws -> Outcome {
    let grace = try SettingFields.grace(visit)
    if visit.isForDraft {
      return try await prepare("Devices without news", visit, inPlaceOf: inForce { PolicyServer.tag($0.grace) }) {
        $0.grace = grace
      }
    }
    _ = try await server.replaceGrace(visit.asking(JSONValue(encoding: grace)), visit.caller())
    return .see("/console/settings", .saved)
  }

  @Sendable private func saveManaged(_ visit: Visit) async throws -> Outcome {
    let values = try ManagedFields.values(visit)
    if visit.isForDraft {
      return try await prepare(
        "How devices are set", visit, inPlaceOf: inForce { PolicyServer.tag(managed: $0.settings) }
      ) {
        $0.setManaged(values)
      }
    }
    _ = try await server.replaceManagedSettings(visit.asking(.object(values)), visit.caller())
    return .see("/console/settings", .saved)
  }

  @Sendable private func saveApprovals(_ visit: Visit) async throws -> Outcome {
    let body: JSONValue = .object(["twoPeople": .boolean(visit.values.isOn("twoPeople"))])
    _ = try await server.changeApprovalSettings(visit.asking(body), visit.caller())
    return .see("/console/settings", .changed)
  }
}

extension PolicyContent {
  /// What the person may do; the configuration profile stays.
  mutating func setOwner(_ settings: Settings) {
    self.settings.ownerActions = settings.ownerActions
    self.settings.allowFilteredTier = settings.allowFilteredTier
  }

  mutating func setManaged(_ values: [String: JSONValue]) { settings.managed = values.isEmpty ? nil : values }
}
