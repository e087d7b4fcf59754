internal import CofferAPI
internal import CofferPolicy

/// What a device made of each setting, beside what the company has set.
struct SettingTreatments: Sendable {
  struct Line: Sendable {
    let name: String
    /// Nil: the company sets it no more, and the device says something of it all the same.
    let value: String?
    /// Nil: the device has not said.
    let treatment: DeviceReport.Treatment?
  }

  let lines: [Line]

  init(_ settings: Settings, _ grace: Grace, _ report: DeviceReport?) {
    let said = report?.settings ?? [:]
    var lines = [
      Line(name: "ownerActions", value: Words.actions(settings.ownerActions), treatment: said["ownerActions"]),
      Line(name: "grace", value: SettingWords.value(grace), treatment: said["grace"]),
    ]
    let (managed, known) = (settings.managed ?? [:], ManagedSettings.Key.allCases.map(\.rawValue))
    for name in known.filter(managed.keys.contains) + managed.keys.filter({ !known.contains($0) }).sorted() {
      lines.append(
        Line(name: name, value: managed[name].map { SettingWords.value(name, $0) }, treatment: said[name]))
    }
    for name in said.keys.sorted() where !lines.contains(where: { $0.name == name }) {
      lines.append(Line(name: name, value: nil, treatment: said[name]))
    }
    self.lines = lines
  }

  /// On the page of one device.
  static func html(_ line: DeviceLine, _ tenant: Tenant) -> HTML {
    let (report, treatments) = (line.state.report, SettingTreatments(tenant.settings, tenant.grace, line.state.report))
    return Tag.section(.class("panel"), .aria(.labelledby, "settings")) {
      Tag.h2(.id("settings")) { "Settings on this device" }
      Tag.p {
        "What the company has set, and what the device says that it made of it. "
        Tag.a(.href("/console/settings")) { "Change the settings" }
        "."
      }
      if report?.settings == nil {
        Tag.p(.class("caution")) { "The device has not said what it made of the settings." }
      } else if let applied = report?.appliedRevision, applied != line.desired, !line.isWiped {
        Tag.p(.class("caution")) {
          "The device says this of revision \(applied), by which it decides. The newest is \(line.desired)."
        }
      }
      DataTable.table("Settings on this device", ["Setting", "Set to", "On the device"]) {
        for line in treatments.lines {
          Tag.tr {
            DataTable.head { SettingWords.name(line.name) }
            DataTable.cell("Set to") { line.value ?? "nothing any more" }
            DataTable.cell("On the device") {
              SettingWords.badge(line.treatment)
              if let treatment = line.treatment {
                Tag.span(.class("under")) { SettingWords.treatment(treatment).meaning }
              }
            }
          }
        }
      }
    }
  }
}
