internal import CofferPolicy
internal import Hummingbird

/// What needs attention, and what to do first.
extension Console {
  var overview: [ConsoleRoute] { [.page("/console", .readPolicy, overviewPage)] }

  /// Devices that the overview looks at.
  private static let deviceLimit = 1_000
  /// Of each kind, as many as anybody looks at on one page.
  private static let listed = 20

  private struct State {
    var requested: [AppRecord] = []
    var ending: [AppRecord] = []
    var approved: Int64 = 0
    var revision: Int64 = 0
    var devices = 0
    var behind: [DeviceLine] = []
    var wiping: [DeviceLine] = []
    var wiped = 0
    /// Those whose groups one of two people asked to change.
    var regrouped: [DeviceLine] = []
    var codes = 0
  }

  private func state(of tenant: String, now: Int64) async throws -> State {
    try await store.read { transaction in
      var state = State()
      state.requested = try transaction.apps(tenant: tenant, .requested, limit: Self.listed)
      state.approved = try transaction.countApps(tenant: tenant, .approved)
      state.ending = try transaction.appsEnding(tenant: tenant, before: now + 14 * 86_400, limit: Self.listed)
      state.revision = try transaction.currentRevisionNumber(tenant: tenant) ?? 0
      let devices = try DeviceLine.all(tenant, after: 0, limit: Self.deviceLimit, now: now, in: transaction)
      state.devices = devices.count
      state.behind = devices.filter { !$0.isCurrent && !$0.isWiped }
      state.wiped = devices.count { $0.isWiped }
      let requests = Set(try transaction.resources(.deviceGroups, tenant: tenant).map(\.id))
      state.regrouped = devices.filter { requests.contains($0.device.id) }
      state.wiping = devices.filter { $0.pending.contains(.wipe) }
      state.codes = try transaction.unusedEnrollments(tenant: tenant, now: now, after: 0, limit: 100).count
      return state
    }
  }

  @Sendable private func overviewPage(_ visit: Visit) async throws -> ConsolePage {
    let state = try await state(of: visit.person().administrator.tenant, now: visit.now)
    return ConsolePage("Overview", in: .overview) {
      Tag.div(.id("live-overview"), .data(.live, "")) {
        if state.approved == 0 || state.devices == 0 { firstSteps(state) }
        attention(state, visit)
        figures(state)
      }
    }
  }

  private func firstSteps(_ state: State) -> HTML {
    Tag.section(.class("panel"), .aria(.labelledby, "first")) {
      Tag.h2(.id("first")) { "What to do first" }
      Tag.ol {
        Tag.li {
          Tag.a(.href("/console/apps#request")) { "Approve an app" }
          state.approved > 0 ? " – done." : ": until then, no app gets any file."
        }
        Tag.li {
          Tag.a(.href("/console/enrolment")) { "Make an enrolment code" }
          state.devices > 0 ? " – done." : ": a device joins your company with it."
        }
        Tag.li {
          Tag.a(.href("/console/simulator")) { "Ask what would be decided" }
          ": try an app, an action and a file before anybody depends on it."
        }
      }
    }
  }

  private func attention(_ state: State, _ visit: Visit) -> HTML {
    let hasFactor = visit.signedIn?.administrator.sealedOneTimeSecret != nil
    let isCalm =
      state.requested.isEmpty && state.ending.isEmpty && state.behind.isEmpty && state.wiping.isEmpty
      && state.regrouped.isEmpty
    return Tag.section(.class("panel"), .aria(.labelledby, "attention")) {
      Tag.h2(.id("attention")) { "What needs attention" }
      if isCalm && hasFactor {
        Tag.p { "Nothing. Every device decides by the newest policy, and nobody waits for an approval." }
      }
      Tag.ul(.class("attention")) {
        for device in state.wiping {
          Tag.li {
            Tag.strong { "A wipe waits for " }
            device.link
            ". It is carried out when the device connects."
            if device.state.report == nil { " \(Words.notReported)" }
          }
        }
        for device in state.regrouped.prefix(Self.listed) {
          Tag.li {
            device.link
            ": a change of its groups waits for a second person."
          }
        }
        for app in state.requested {
          Tag.li {
            Tag.a(.href("/console/apps/\(app.approval.id)")) { app.approval.name }
            " waits for an approval."
          }
        }
        for app in state.ending {
          Tag.li {
            Tag.a(.href("/console/apps/\(app.approval.id)")) { app.approval.name }
            ": its approval ends on "
            if let end = app.expiresAt { Words.time(end) }
            "."
          }
        }
        for device in state.behind.prefix(Self.listed) {
          Tag.li {
            device.link
            ": revision \(state.revision) is the newest, and \(device.progress)."
          }
        }
        if state.behind.count > Self.listed {
          Tag.li { "\(state.behind.count - Self.listed) more devices do not decide by it, or have not said so." }
        }
        if !hasFactor {
          Tag.li {
            "Your account is protected by a password alone. "
            Tag.a(.href("/console/account")) { "Add one-time codes" }
            "."
          }
        }
      }
    }
  }

  private func figures(_ state: State) -> HTML {
    Tag.section(.class("panel"), .aria(.labelledby, "figures")) {
      Tag.h2(.id("figures")) { "At a glance" }
      Tag.dl(.class("figures")) {
        figure("Policy revision", "\(state.revision)")
        figure("Approved apps", "\(state.approved)")
        figure("Devices", state.devices == Self.deviceLimit ? "\(Self.deviceLimit) or more" : "\(state.devices)")
        figure("Up to date", "\(state.devices - state.behind.count - state.wiped)")
        if state.wiped > 0 { figure("Wiped", "\(state.wiped)") }
        figure("Unused enrolment codes", "\(state.codes)")
      }
      Tag.p(.class("hint")) {
        "Each change of the policy has the next revision. A device decides by the revision that it has applied last."
      }
    }
  }

  private func figure(_ name: String, _ value: String) -> HTML {
    Tag.div {
      Tag.dt { name }
      Tag.dd { value }
    }
  }
}
