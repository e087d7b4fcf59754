internal import CofferAPI
internal import CofferPolicy
internal import Hummingbird

/// What the server knows of a device. What the device says of itself is marked as its own word.
struct DeviceFacts {
  let line: DeviceLine
  let groups: [DeviceGroup]
  let now: Int64

  var html: HTML {
    let (device, state) = (line.device, line.state)
    return Tag.section(.class("panel"), .aria(.labelledby, "facts")) {
      Tag.h2(.id("facts")) { "State" }
      if line.isWiped {
        Tag.p(.class("caution")) {
          "This device was wiped: it signed that it destroyed the vault’s keys. What stands here is what it said before."
        }
      }
      Tag.dl {
        Facts.fact("Policy") {
          line.badge
          " The newest revision is \(line.desired); \(line.progress)."
        }
        Facts.fact("Last seen") {
          if let seen = state.lastSeenAt {
            Words.ago(seen, now: now)
            ", "
            Words.time(seen)
          } else {
            "never since it joined"
          }
        }
        Facts.fact("Joined") { Words.time(device.enrolledAt) }
        Facts.fact("Id") { Tag.code { device.id } }
        Facts.fact("Groups") { state.groups.isEmpty ? "none" : state.groups.map(name).joined(separator: ", ") }
      }
      Tag.h3 { "What the device says of itself" }
      if let report = state.report {
        Tag.dl {
          Facts.fact("Runs") { device.platform ?? "not said" }
          Facts.fact("Operating system") { report.osVersion ?? "not said" }
          Facts.fact("Coffer") { report.version ?? "not said" }
          Facts.fact("Passcode") { said(report.isPasscodeSet, "set", "not set") }
          Facts.fact("Keys") { said(report.isProtectionAvailable, "held by hardware", "held by files alone") }
        }
      } else {
        Tag.p(.class("empty")) { Words.notReported }
      }
    }
  }

  private func name(_ group: String) -> String { groups.first { $0.id == group }?.name ?? group }

  private func said(_ value: Bool?, _ yes: String, _ no: String) -> String {
    value.map { $0 ? yes : no } ?? "not said"
  }
}
