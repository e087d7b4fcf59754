internal import CofferPolicy
internal import Hummingbird

/// Groups of devices, which each device's own record says.
extension Console {
  var groups: [ConsoleRoute] {
    [
      .page("/console/groups", .readDevices, groupsPage),
      .change("/console/groups", .manageDevices, on: groupsPage, addGroup),
      .page("/console/groups/:id", .readDevices, groupPage),
      .change("/console/groups/:id/change", .manageDevices, on: groupPage, changeGroup),
      .change("/console/groups/:id/remove", .manageDevices, on: groupPage, removeGroup),
      .change("/console/groups/:id/put", .manageDevices, on: groupPage, putIntoGroup),
      .change("/console/groups/:id/take", .manageDevices, on: groupPage, takeFromGroup),
      .change("/console/devices/:id/groups", .manageDevices, on: devicePage, saveDeviceGroups),
    ]
  }

  private var groupRoutes: ResourceRoutes<DeviceGroup> { ResourceRoutes(server: server, path: "/v1/groups") }

  /// Devices that these pages look at.
  private static let deviceLimit = 1_000

  private typealias Member = (device: Device, groups: [String])

  private func deviceGroups(_ tenant: String, in transaction: any StoreTransaction) throws -> [Member] {
    try transaction.devices(tenant: tenant, after: 0, limit: Self.deviceLimit).map { _, device in
      (device, try transaction.deviceState(tenant: tenant, id: device.id)?.groups ?? [])
    }
  }

  @Sendable private func groupsPage(_ visit: Visit) async throws -> ConsolePage {
    let tenant = try visit.person().administrator.tenant
    let after = try self.after(visit)
    let (groups, members) = try await store.read { transaction in
      (
        try transaction.resources(.group, tenant: tenant, after: after, limit: PageRequest.standard + 1)
          .map { (number: $0.number, value: try $0.value.decoded(DeviceGroup.self)) },
        try deviceGroups(tenant, in: transaction)
      )
    }
    let more = try next(groups, "/console/groups", visit)
    return ConsolePage("Groups", in: .groups) {
      Tag.p { "Devices that belong together, such as those of one department. Rules can be about groups." }
      Tag.p { Words.aboutGroups }
      Tag.div(.id("live-groups"), .data(.live, "")) {
        if groups.isEmpty {
          Tag.p(.class("empty")) {
            "There is no group, and none is needed while rules are the same for all devices. Add the first one below."
          }
        } else {
          DataTable.table("Groups", ["Group", "Rules call it", "Devices"]) {
            for group in groups.prefix(PageRequest.standard).map(\.value) {
              Tag.tr {
                DataTable.head { Tag.a(.href("/console/groups/\(group.id)")) { group.name } }
                DataTable.cell("Rules call it") { Tag.code { group.id } }
                DataTable.cell("Devices") { "\(members.count { $0.groups.contains(group.id) })" }
              }
            }
          }
        }
      }
      more
      if visit.may(.manageDevices) {
        let form = Form(visit, "/console/groups")
        Tag.section(.class("panel"), .aria(.labelledby, "add")) {
          Tag.h2(.id("add")) { "Add a group" }
          form("Add the group") {
            form.text("What people call it", "name", hint: "Such as Board.")
            form.text("Short name", "id", hint: Words.shortName)
          }
        }
      }
    }
  }

  @Sendable private func groupPage(_ visit: Visit) async throws -> ConsolePage {
    let (id, tenant) = (try visit.call.name(), try visit.person().administrator.tenant)
    let (stored, rules, members) = try await store.read { transaction in
      (
        try server.found(transaction.resource(.group, id: id, tenant: tenant)),
        try transaction.resources(.rule, tenant: tenant).map { try $0.decoded(Rule.self) }.filter {
          $0.names(group: id)
        },
        try deviceGroups(tenant, in: transaction)
      )
    }
    let (group, tag) = (try stored.decoded(DeviceGroup.self), EntityTag(of: stored.body.utf8))
    return ConsolePage("Group \(group.name)", in: .groups) {
      Tag.p { Words.aboutGroups }
      devices(of: group, members, visit)
      Tag.section(.class("panel"), .aria(.labelledby, "used")) {
        Tag.h2(.id("used")) { "Rules about it" }
        RuleLinks.html(rules.map(\.id), nothing: "No rule is about it.")
      }
      if visit.may(.manageDevices) {
        let form = Form(visit, "/console/groups/\(id)/change")
        Tag.section(.class("panel"), .aria(.labelledby, "change")) {
          Tag.h2(.id("change")) { "Change it" }
          form("Save the name", match: tag) { form.text("What people call it", "name", group.name) }
        }
        Tag.section(.class("panel"), .aria(.labelledby, "remove")) {
          Tag.h2(.id("remove")) { "Remove it" }
          Tag.p {
            rules.isEmpty
              ? "The devices stay; they are of this group no longer."
              : "The devices stay; they are of this group no longer. The rules about it stay, too, and are about no "
                + "device then: look at them first."
          }
          Form(visit, "/console/groups/\(id)/remove")("Remove the group", match: tag, style: "danger") {}
        }
      }
    }
  }

  private func devices(of group: DeviceGroup, _ members: [Member], _ visit: Visit) -> HTML {
    let own = members.filter { $0.groups.contains(group.id) }
    let others = members.filter { !$0.groups.contains(group.id) }
    return Tag.section(.class("panel"), .aria(.labelledby, "devices")) {
      Tag.h2(.id("devices")) { "Its devices" }
      if members.count == Self.deviceLimit {
        Tag.p(.class("hint")) {
          "The first \(Self.deviceLimit) devices are looked at. Others have their groups on their pages."
        }
      }
      if own.isEmpty {
        Tag.p(.class("empty")) { "No device is of this group." }
      } else {
        DataTable.table("Devices of the group", ["Device", "Take out"]) {
          for (device, _) in own {
            Tag.tr {
              DataTable.head { Tag.a(.href("/console/devices/\(device.id)")) { DeviceLine.name(device) } }
              DataTable.cell("Take out") {
                if visit.may(.manageDevices) {
                  let form = Form(visit, "/console/groups/\(group.id)/take")
                  form("Take \(DeviceLine.name(device)) out", style: "plain") { form.hidden("device", device.id) }
                } else {
                  "–"
                }
              }
            }
          }
        }
      }
      if visit.may(.manageDevices) && !others.isEmpty {
        let form = Form(visit, "/console/groups/\(group.id)/put")
        form("Put the device into the group") {
          form.select(
            "Device", "device", others.map { ($0.device.id, DeviceLine.name($0.device), nil) }, chosen: "")
        }
      }
    }
  }

  private static func group(_ id: String, _ visit: Visit) throws -> JSONValue {
    try visit.demand("name", "id")
    return .object(["id": .string(id), "name": .string(visit.values.text("name") ?? "")])
  }

  @Sendable private func addGroup(_ visit: Visit) async throws -> Outcome {
    let body = try Self.group(visit.values.text("id") ?? "", visit)
    let group = try await groupRoutes.make(visit.asking(body), visit.caller()).decoded(DeviceGroup.self)
    return .see("/console/groups/\(group.id)", .groupsChanged)
  }

  @Sendable private func changeGroup(_ visit: Visit) async throws -> Outcome {
    let id = try visit.call.name()
    _ = try await groupRoutes.replace(visit.asking(Self.group(id, visit)), visit.caller())
    return .see("/console/groups/\(id)", .changed)
  }

  @Sendable private func removeGroup(_ visit: Visit) async throws -> Outcome {
    _ = try await groupRoutes.remove(visit.asking(), visit.caller())
    return .see("/console/groups", .removed)
  }

  @Sendable private func putIntoGroup(_ visit: Visit) async throws -> Outcome {
    try await change(visit) { $0.union([$1]) }
  }

  @Sendable private func takeFromGroup(_ visit: Visit) async throws -> Outcome {
    try await change(visit) { $0.subtracting([$1]) }
  }

  /// Whatever else the device is in, it stays in: so the version is read here, not sent by the form.
  private func change(_ visit: Visit, _ body: (Set<String>, String) -> Set<String>) async throws -> Outcome {
    let (id, tenant) = (try visit.call.name(), try visit.person().administrator.tenant)
    guard let device = visit.values.text("device") else { throw HTTPProblem.invalid("device", "is not chosen") }
    let (groups, known) = try await store.read { transaction in
      _ = try server.found(transaction.resource(.group, id: id, tenant: tenant))
      _ = try server.found(transaction.device(tenant: tenant, id: device))
      return (
        try transaction.deviceState(tenant: tenant, id: device)?.groups ?? [],
        Set(try transaction.resources(.group, tenant: tenant).map(\.id))
      )
    }
    let wanted = body(Set(groups).intersection(known), id).sorted()
    let tag = PolicyServer.DeviceView.tag(device, groups).description
    let answer = try await server.changeDevice(
      visit.asking(.object(["groups": .texts(wanted)]), id: device, match: tag), visit.caller())
    return .see("/console/groups/\(id)", try await answer.decoded(ChangedGroups.self).notice)
  }

  /// Where the company asks two people, the first has only asked.
  private struct ChangedGroups: Decodable {
    let requestedGroups: [String]?
    var notice: Notice { requestedGroups == nil ? .groupsChanged : .groupsAsked }
  }

  /// What one of two people asked for, for another to make it so.
  private func asked(
    _ request: GroupRequest, by name: String, _ line: DeviceLine, _ groups: [DeviceGroup], _ visit: Visit
  ) -> HTML? {
    guard request.base == line.state.groups else { return nil }
    let names = request.groups.map { id in "“\(groups.first { $0.id == id }?.name ?? id)”" }
    let isOwn = visit.signedIn.map { Actor.administrator($0.administrator.id).description } == request.requester
    let form = Form(visit, "/console/devices/\(line.device.id)/groups")
    return Tag.div(.class("caution")) {
      Tag.p {
        "\(name) asks that the device be of \(names.isEmpty ? "no group" : RuleWords.list(names, "and")). Your company asks "
          + "two people for groups that rules name: \(isOwn ? "another administrator makes it so." : "you can make it so.")"
      }
      if !isOwn {
        form("Make it so", match: PolicyServer.DeviceView.tag(line.device.id, line.state.groups)) {
          for group in request.groups { form.hidden("groups", group) }
        }
      }
    }
  }

  /// On the page of a device.
  func groupForm(
    _ line: DeviceLine, _ groups: [DeviceGroup], asked request: GroupRequest?, by name: String, _ visit: Visit
  ) -> HTML {
    let form = Form(visit, "/console/devices/\(line.device.id)/groups")
    return Tag.section(.class("panel"), .aria(.labelledby, "groups")) {
      Tag.h2(.id("groups")) { "Groups" }
      Tag.p { Words.aboutGroups }
      if let request { asked(request, by: name, line, groups, visit) }
      if groups.isEmpty {
        Tag.p(.class("empty")) {
          "Your company has no group. "
          Tag.a(.href("/console/groups")) { "Add one" }
          "."
        }
      } else {
        form("Save the groups", match: PolicyServer.DeviceView.tag(line.device.id, line.state.groups)) {
          form.checkboxes(
            "The device is of", "groups", groups.map { ($0.id, $0.name, nil) }, chosen: line.state.groups)
        }
      }
    }
  }

  @Sendable private func saveDeviceGroups(_ visit: Visit) async throws -> Outcome {
    let answer = try await server.changeDevice(
      visit.asking(.object(["groups": .texts(visit.values.all("groups"))])), visit.caller())
    return .see("/console/devices/\(try visit.call.id())", try await answer.decoded(ChangedGroups.self).notice)
  }
}

extension Rule {
  /// Whether it says anything of this group.
  fileprivate func names(group: String) -> Bool {
    groups?.contains(group) == true
      || conditions.contains { condition in
        if case .group(group) = condition.test { true } else { false }
      }
  }
}
