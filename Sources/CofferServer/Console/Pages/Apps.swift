internal import CofferPolicy
internal import Hummingbird

/// Apps with their approvals.
extension Console {
  var apps: [ConsoleRoute] {
    [
      .page("/console/apps", .readPolicy, appsPage),
      .change("/console/apps", .changePolicy, on: appsPage, requestApp),
      .page("/console/apps/:id", .readPolicy, appPage),
      .change("/console/apps/:id/change", .changePolicy, on: appPage, changeApp),
      .change("/console/apps/:id/approve", .changePolicy, on: appPage, approveApp),
      .change("/console/apps/:id/revoke", .changePolicy, on: appPage, revokeApp),
      .change("/console/apps/:id/remove", .changePolicy, on: appPage, removeApp),
    ]
  }

  @Sendable private func appsPage(_ visit: Visit) async throws -> ConsolePage {
    let tenant = try visit.person().administrator.tenant
    let after = try self.after(visit)
    let (apps, company) = try await store.read { transaction in
      (
        try transaction.appRecords(tenant: tenant, after: after, limit: PageRequest.standard + 1),
        try transaction.tenant(id: tenant)
      )
    }
    let more = try next(apps, "/console/apps", visit)
    return ConsolePage("Apps", in: .apps) {
      Tag.p {
        "An app gets files of your company only when it is approved: for these file types, and for these actions. "
          + "Everything else is refused."
      }
      Tag.div(.id("live-apps"), .data(.live, "")) { list(apps.prefix(PageRequest.standard).map(\.value)) }
      more
      if visit.may(.changePolicy) {
        Tag.section(.class("panel"), .id("request"), .aria(.labelledby, "request-title")) {
          Tag.h2(.id("request-title")) { "Request an app" }
          if company?.needsTwoApprovers == true {
            Tag.p { "Two people have to stand behind an approval: who requests and approves alone is not enough." }
          }
          AppForm(form: Form(visit, "/console/apps"), app: nil).html(
            button: "Request", then: ["approve": "Request and approve"], match: nil)
        }
      }
    }
  }

  private func list(_ apps: [AppRecord]) -> HTML {
    if apps.isEmpty {
      return Tag.p(.class("empty")) { "There is no app yet. Request the first one below, then approve it." }
    }
    return DataTable.table("Apps", ["App", "State", "May", "File types", "Tier"]) {
      for app in apps {
        Tag.tr {
          DataTable.head {
            Tag.a(.href("/console/apps/\(app.approval.id)")) { app.approval.name }
            Tag.span(.class("under")) { app.approval.bundleId }
          }
          DataTable.cell("State") { badge(app) }
          DataTable.cell("May") { Words.actions(app.approval.actions) }
          DataTable.cell("File types") { fileTypes(app.approval) }
          DataTable.cell("Tier") { Words.tier(app.approval.tier).name }
        }
      }
    }
  }

  private func fileTypes(_ approval: AppApproval) -> String {
    approval.extensions.isEmpty ? "none" : approval.extensions.map { ".\($0)" }.joined(separator: " ")
  }

  private func badge(_ app: AppRecord) -> HTML {
    Tag.span(.class("badge \(app.state.rawValue)")) { Words.state(app.state) }
  }

  @Sendable private func appPage(_ visit: Visit) async throws -> ConsolePage {
    let (id, tenant) = (try visit.call.id(), try visit.person().administrator.tenant)
    let (app, names, allowsFiltered, hasDevices) = try await store.read { transaction in
      let app = try server.found(transaction.appRecord(tenant: tenant, id: id))
      let actors =
        app.details.approvers.map(\.actor) + [app.details.requester, app.details.revokedBy].compactMap(\.self)
      return (
        app, try ActorNames(actors, tenant: tenant, in: transaction),
        try transaction.tenant(id: tenant)?.settings.allowFilteredTier == true,
        try !transaction.devices(tenant: tenant, after: 0, limit: 1).isEmpty
      )
    }
    return ConsolePage(app.approval.name, in: .apps) {
      Tag.div(.id("live-app"), .data(.live, "")) {
        facts(app, names, allowsFiltered: allowsFiltered)
        if app.state == .approved && !hasDevices && visit.may(.manageDevices) {
          Tag.p {
            "Next: "
            Tag.a(.href("/console/enrolment")) { "make an enrolment code" }
            ", with which a device joins your company."
          }
        }
      }
      if visit.may(.changePolicy) { steps(app, visit) }
    }
  }

  private func facts(_ app: AppRecord, _ names: ActorNames, allowsFiltered: Bool) -> HTML {
    let (approval, tier) = (app.approval, Words.tier(app.approval.tier))
    return Tag.section(.class("panel"), .aria(.labelledby, "facts")) {
      Tag.h2(.id("facts")) { "The approval" }
      if app.state != .revoked { caution(app.approval, allowsFiltered: allowsFiltered) }
      Tag.dl {
        Facts.fact("State") {
          badge(app)
          switch app.state {
          case .requested: " It gets nothing yet."
          case .approved: " It is in the policy that devices decide by."
          case .revoked: " It gets nothing any more."
          }
        }
        Facts.fact("Bundle id") { Tag.code { approval.bundleId } }
        Facts.fact("Team id") { Tag.code { approval.teamId } }
        Facts.fact("Team key") {
          if let key = approval.teamKey {
            Tag.code { key.text }
          } else {
            "None. Anybody can make an app that calls itself so."
          }
        }
        Facts.fact("Tier") {
          Tag.strong { tier.name }
          ". \(tier.meaning)"
        }
        Facts.fact("May") {
          Words.actions(approval.actions)
          if app.state == .approved {
            ". "
            Tag.a(.href(question(app))) { "Ask the simulator about it" }
          }
        }
        Facts.fact("File types") { fileTypes(approval) }
        if let version = app.details.minimumVersion { Facts.fact("Oldest version") { version } }
        if let platform = app.details.platform { Facts.fact("Platform") { platform } }
        if let requester = app.details.requester {
          Facts.fact("Requested by") {
            names.name(requester)
            if let reason = app.details.reason { ": “\(reason)”" }
          }
        }
        for approver in app.details.approvers {
          Facts.fact("Approved by") {
            names.name(approver.actor)
            " on "
            Words.time(approver.at)
            if let reason = approver.reason { ": “\(reason)”" }
          }
        }
        if let end = app.expiresAt { Facts.fact("Ends on") { Words.time(end) } }
        if let revoker = app.details.revokedBy {
          Facts.fact("Revoked by") {
            names.name(revoker)
            if let reason = app.details.revocationReason { ": “\(reason)”" }
          }
        }
      }
    }
  }

  /// Why an approved app may get nothing all the same.
  private func caution(_ approval: AppApproval, allowsFiltered: Bool) -> HTML? {
    switch approval.tier {
    case _ where approval.actions.isEmpty:
      Tag.p(.class("caution")) {
        "Also when it is approved, the app may do nothing: change what is approved, and choose an action."
      }
    case .filtered where !allowsFiltered:
      Tag.p(.class("caution")) {
        "Also when it is approved, devices give this app nothing: without a team key it is only a name, and the "
        Tag.a(.href("/console/settings")) { "settings" }
        " do not let such apps have files. Change the approval and add the team key."
      }
    case .enforced:
      Tag.p(.class("caution")) {
        "Also when it is approved, devices give this app nothing: no device can hold an app so tightly yet. Change the "
          + "approval to the tier Mediated."
      }
    case .filtered, .mediated: nil
    }
  }

  /// Such as what an approval lets the app do first.
  private func question(_ app: AppRecord) -> Link {
    ("/console/simulator" as Link).asking([
      "app": app.approval.id, "action": app.approval.actions.first?.rawValue, "type": app.approval.extensions.first,
    ])
  }

  @HTMLBuilder private func steps(_ app: AppRecord, _ visit: Visit) -> HTML {
    let (id, tag) = (app.approval.id, AppView(app).tag)
    if app.state == .requested {
      let form = Form(visit, "/console/apps/\(id)/approve")
      Tag.section(.class("panel"), .aria(.labelledby, "approve")) {
        Tag.h2(.id("approve")) { "Approve" }
        Tag.p { "Devices let this app do what stands above as soon as they have the new policy." }
        form("Approve", match: tag) {
          form.text("Reason", "reason", hint: "Kept in the audit.", optional: true)
          form.text(
            "Ends on", "expiresAt", app.expiresAt.map(Words.day) ?? "", kind: .date,
            hint:
              "The approval ends by itself at the end of this day, UTC. Without a day, it lasts until it is revoked.",
            optional: true)
        }
      }
    }
    if app.state != .revoked {
      let form = Form(visit, "/console/apps/\(id)/revoke")
      let verb = app.state == .requested ? "Refuse" : "Revoke"
      Tag.section(.class("panel"), .aria(.labelledby, "revoke")) {
        Tag.h2(.id("revoke")) { verb }
        Tag.p { "From then on the app gets nothing. A copy that it has already, it keeps." }
        form(verb, match: tag, style: "danger") {
          form.text("Reason", "reason", hint: "Kept in the audit.", optional: true)
        }
      }
    }
    let isChange = visit.path.hasSuffix("/change")
    Tag.details(isChange ? .open : nil) {
      Tag.summary { "Change what is approved" }
      Tag.p { "A changed app is requested anew: it gets nothing until it is approved again." }
      AppForm(form: Form(visit, "/console/apps/\(id)/change"), app: app).html(button: "Save", then: [:], match: tag)
    }
    let form = Form(visit, "/console/apps/\(id)/remove")
    Tag.details {
      Tag.summary { "Remove the app from this list" }
      Tag.p { "The app gets nothing any more, and is not shown here. The audit keeps what was." }
      form("Remove", match: tag, style: "danger") {}
    }
  }

  fileprivate struct Made: Decodable {
    let id: String
    let state: AppRecord.State
  }

  @Sendable private func requestApp(_ visit: Visit) async throws -> Outcome {
    let caller = try visit.caller()
    let answer = try await server.requestApp(visit.asking(AppForm.body(visit)), caller)
    let app = try await answer.decoded(Made.self)
    guard visit.values.exact("then") == "approve" else { return .see("/console/apps/\(app.id)", .requested) }
    let tag = answer.headers[.eTag]
    let approved = try await server.approveApp(
      visit.asking(.fields(["reason": visit.values.text("reason").map { .string($0) }]), id: app.id, match: tag), caller
    )
    return .see("/console/apps/\(app.id)", try await approved.decoded(Made.self).notice)
  }

  @Sendable private func changeApp(_ visit: Visit) async throws -> Outcome {
    let app = try await server.changeApp(visit.asking(AppForm.body(visit)), visit.caller()).decoded(Made.self)
    return .see("/console/apps/\(app.id)", .requested)
  }

  @Sendable private func approveApp(_ visit: Visit) async throws -> Outcome {
    let body = try AppForm.reasons(visit)
    let app = try await server.approveApp(visit.asking(body), visit.caller()).decoded(Made.self)
    return .see("/console/apps/\(app.id)", app.notice)
  }

  @Sendable private func revokeApp(_ visit: Visit) async throws -> Outcome {
    let body = try AppForm.reasons(visit)
    let app = try await server.revokeApp(visit.asking(body), visit.caller()).decoded(Made.self)
    return .see("/console/apps/\(app.id)", .revoked)
  }

  @Sendable private func removeApp(_ visit: Visit) async throws -> Outcome {
    _ = try await server.removeApp(visit.asking(), visit.caller())
    return .see("/console/apps", .removed)
  }
}

extension Console.Made {
  fileprivate var notice: Notice { state == .approved ? .approved : .halfApproved }
}
