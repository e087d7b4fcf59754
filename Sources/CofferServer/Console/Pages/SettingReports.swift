internal import CofferAPI
internal import CofferPolicy
internal import Hummingbird

/// Which devices follow the settings, and which do not.
extension Console {
  var settingReports: [ConsoleRoute] { [.page("/console/settings/devices", .readDevices, settingReportsPage)] }

  /// Devices that this page looks at, and devices that it names.
  private static let deviceLimit = 1_000
  private static let namedLimit = 100

  private struct Said {
    let line: DeviceLine
    let treatments: SettingTreatments
  }

  @Sendable private func settingReportsPage(_ visit: Visit) async throws -> ConsolePage {
    let id = try visit.person().administrator.tenant
    let (tenant, devices) = try await store.read { transaction in
      (
        try server.found(transaction.tenant(id: id)),
        try DeviceLine.all(id, after: 0, limit: Self.deviceLimit, now: visit.now, in: transaction)
      )
    }
    // What was wiped follows nothing any more.
    let all = devices.filter { !$0.isWiped }.map {
      Said(line: $0, treatments: SettingTreatments(tenant.settings, tenant.grace, $0.state.report))
    }
    return ConsolePage("What devices made of the settings", in: .settings) {
      Tag.p {
        "Each device reports of every setting whether it holds there. What it says is its own word. "
        Tag.a(.href("/console/settings")) { "Go back to the settings" }
        "."
      }
      Tag.div(.id("live-treatments"), .data(.live, "")) {
        if all.isEmpty {
          Tag.p(.class("empty")) {
            "There is no device to follow them. "
            Tag.a(.href("/console/enrolment")) { "Make an enrolment code" }
            " and enter it on the device."
          }
        } else {
          if devices.count == Self.deviceLimit {
            Tag.p(.class("hint")) { "The first \(Self.deviceLimit) devices are counted." }
          }
          summary(SettingTreatments(tenant.settings, tenant.grace, nil), all)
          exceptions(all)
        }
      }
    }
  }

  private func summary(_ settings: SettingTreatments, _ all: [Said]) -> HTML {
    Tag.section(.class("panel"), .aria(.labelledby, "summary")) {
      Tag.h2(.id("summary")) { "Setting by setting" }
      DataTable.table("Settings", ["Setting", "Set to", "Devices"]) {
        for setting in settings.lines {
          let said = all.map { one in one.treatments.lines.first { $0.name == setting.name }?.treatment }
          Tag.tr {
            DataTable.head { SettingWords.name(setting.name) }
            DataTable.cell("Set to") { setting.value ?? "" }
            DataTable.cell("Devices") {
              Tag.ul(.class("differences")) {
                for treatment in DeviceReport.Treatment.allCases.map(Optional.some) + [nil] {
                  let count = said.count { $0 == treatment }
                  if count > 0 {
                    Tag.li {
                      SettingWords.badge(treatment)
                      " \(count) of \(all.count)"
                    }
                  }
                }
              }
            }
          }
        }
      }
      Tag.dl {
        for treatment in DeviceReport.Treatment.allCases {
          let words = SettingWords.treatment(treatment)
          Facts.fact(words.name) { words.meaning }
        }
        Facts.fact(SettingWords.notSaid) { "The device has not reported since the setting was made, or never." }
      }
    }
  }

  private func exceptions(_ all: [Said]) -> HTML {
    let found = all.flatMap { one in
      one.treatments.lines.compactMap { line -> (DeviceLine, SettingTreatments.Line)? in
        line.treatment == .ignored || line.treatment == .refused ? (one.line, line) : nil
      }
    }
    return Tag.section(.class("panel"), .aria(.labelledby, "exceptions")) {
      Tag.h2(.id("exceptions")) { "Where a setting does not hold" }
      if found.isEmpty {
        Tag.p(.class("empty")) { "No device says that it ignores or refuses a setting." }
      } else {
        DataTable.table("Where a setting does not hold", ["Device", "Setting", "On the device"]) {
          for (device, line) in found.prefix(Self.namedLimit) {
            Tag.tr {
              DataTable.head { device.link }
              DataTable.cell("Setting") {
                line.value == nil ? "\(SettingWords.name(line.name)), set no more" : SettingWords.name(line.name)
              }
              DataTable.cell("On the device") { SettingWords.badge(line.treatment) }
            }
          }
        }
        if found.count > Self.namedLimit { Tag.p { "And \(found.count - Self.namedLimit) more." } }
      }
    }
  }
}
