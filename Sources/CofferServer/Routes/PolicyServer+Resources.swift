internal import CofferPolicy
internal import Foundation
internal import HTTPTypes
internal import Hummingbird

/// Something that a company writes and names itself.
protocol NamedResource: Codable, Sendable {
  static var kind: ResourceKind { get }
  /// Part of the path, of the signed policy and of decisions.
  var resourceName: String { get }
  /// Whether the policy is made of it, and is to be signed anew when it changes.
  static var isPolicy: Bool { get }
  /// Whether a text can be one of these's name.
  static func isName(_ text: String) -> Bool
  /// Throws a problem that names the field that is not valid.
  func check() throws
  /// Throws a problem when this change of the policy is not one person's; nil is that there is none.
  static func demandLeave(from old: Self?, to new: Self?, in change: Change) throws
}

extension NamedResource {
  static var isPolicy: Bool { true }
  static func isName(_ text: String) -> Bool { PolicyText.isIdentifier(text) }
  static func demandLeave(from old: Self?, to new: Self?, in change: Change) throws {}
}

extension Rule: NamedResource {
  static var kind: ResourceKind { .rule }
  var resourceName: String { id }

  static func demandLeave(from old: Rule?, to new: Rule?, in change: Change) throws {
    try TwoPeople.demandNarrowing(
      TwoPeople.widens(from: [old].compactMap(\.self), to: [new].compactMap(\.self)), in: change)
  }

  func check() throws {
    guard PolicyText.isIdentifier(id), !PolicyContent.isOwn(id) else {
      throw HTTPProblem.invalid("id", "is 1 to 128 of A-Z a-z 0-9 . _ -, and does not begin with minimum-version.")
    }
    for condition in conditions {
      switch condition.test {
      case .unknown: throw HTTPProblem.invalid("conditions", "has one of an unknown kind")
      case .timeWindow(let window) where !window.isWellFormed:
        throw HTTPProblem.invalid(
          "conditions",
          "has hours that are none: days are 1 to 7, the start is before the end, minutes are up to 1440, and the offset up to 840"
        )
      default: break
      }
    }
  }
}

extension Classification: NamedResource {
  static var kind: ResourceKind { .classification }
  var resourceName: String { id }

  func check() throws {
    guard PolicyText.isIdentifier(id) else { throw HTTPProblem.invalid("id", "is 1 to 128 of A-Z a-z 0-9 . _ -") }
    guard PolicyText.isName(name) else { throw HTTPProblem.invalid("name", "has 1 to 200 bytes") }
  }
}

extension FileType: NamedResource {
  static var kind: ResourceKind { .fileType }
  var resourceName: String { `extension` }

  static func isName(_ text: String) -> Bool { PolicyText.isExtension(text) }

  static func demandLeave(from old: FileType?, to new: FileType?, in change: Change) throws {
    try TwoPeople.demandNarrowing(
      TwoPeople.widens(from: [old].compactMap(\.self), to: [new].compactMap(\.self)), in: change)
  }

  func check() throws {
    guard PolicyText.isExtension(`extension`) else {
      throw HTTPProblem.invalid("extension", "is 1 to 32 of a-z 0-9 + - _, without a dot")
    }
  }
}

/// Devices that belong together. Which those are, each device's own record says.
struct DeviceGroup: NamedResource {
  let id: String
  let name: String

  static var kind: ResourceKind { .group }
  static var isPolicy: Bool { false }
  var resourceName: String { id }

  static func demandLeave(from old: DeviceGroup?, to new: DeviceGroup?, in change: Change) throws {
    guard let old, new == nil, try TwoPeople.isAsked(in: change), try GroupRequest.named(in: change).contains(old.id)
    else {
      return
    }
    throw HTTPProblem(
      .conflict, "A rule names this group, and the company asks two people: take it out of the rules first.")
  }

  func check() throws {
    guard PolicyText.isIdentifier(id) else { throw HTTPProblem.invalid("id", "is 1 to 128 of A-Z a-z 0-9 . _ -") }
    guard PolicyText.isName(name) else { throw HTTPProblem.invalid("name", "has 1 to 200 bytes") }
  }
}

/// The same five routes for each kind.
struct ResourceRoutes<Resource: NamedResource>: Sendable {
  let server: PolicyServer
  let path: String

  @Sendable func list(_ call: Call, _ caller: Caller) async throws -> Response {
    let request = try PageRequest(call, caller, server.sealing)
    let found = try await server.store.read {
      try $0.resources(Resource.kind, tenant: caller.tenant, after: request.after, limit: request.limit + 1)
    }
    return .json(try request.page(of: found) { try $0.decoded(Resource.self) })
  }

  @Sendable func show(_ call: Call, _ caller: Caller) async throws -> Response {
    let id = try call.name(Resource.isName)
    let stored = try await server.store.read { try $0.resource(Resource.kind, id: id, tenant: caller.tenant) }
    return try response(server.found(stored))
  }

  @Sendable func make(_ call: Call, _ caller: Caller) async throws -> Response {
    let resource = try decoded(call)
    return try await server.create(call, caller) { change in
      let stored = StoredResource(Resource.kind, id: resource.resourceName, resource)
      try change.demandRoom(for: Resource.kind)
      try Resource.demandLeave(from: nil, to: resource, in: change)
      guard try change.transaction.insert(stored, tenant: caller.tenant) else {
        throw HTTPProblem(.alreadyExists, "There is one with this id.")
      }
      change.isPolicyChanged = Resource.isPolicy
      try change.record(.resourceCreated, resource.resourceName, replacing: nil, with: stored)
      return KeptAnswer(resource, location: "\(path)/\(resource.resourceName)", tag: tag(stored))
    }
  }

  @Sendable func replace(_ call: Call, _ caller: Caller) async throws -> Response {
    let (id, resource) = (try call.name(Resource.isName), try decoded(call))
    let stored = StoredResource(Resource.kind, id: id, resource)
    try await server.commit(caller) { change in
      let old = try server.found(change.transaction.resource(Resource.kind, id: id, tenant: caller.tenant))
      guard resource.resourceName == id else { throw HTTPProblem.invalid("id", "is not the path's") }
      try call.requireMatch(tag(old))
      guard old != stored else { return }
      try Resource.demandLeave(from: old.decoded(Resource.self), to: resource, in: change)
      _ = try change.transaction.update(stored, tenant: caller.tenant)
      change.isPolicyChanged = Resource.isPolicy
      try change.record(.resourceChanged, id, replacing: old, with: stored)
    }
    return try response(stored)
  }

  @Sendable func remove(_ call: Call, _ caller: Caller) async throws -> Response {
    let id = try call.name(Resource.isName)
    try await server.commit(caller) { change in
      let old = try server.found(change.transaction.resource(Resource.kind, id: id, tenant: caller.tenant))
      try call.requireMatch(tag(old))
      try Resource.demandLeave(from: old.decoded(Resource.self), to: nil, in: change)
      _ = try change.transaction.deleteResource(Resource.kind, id: id, tenant: caller.tenant)
      change.isPolicyChanged = Resource.isPolicy
      if Resource.kind == .group { try leave(id, in: change) }
      try change.record(.resourceRemoved, id, replacing: old, with: nil)
    }
    return .plain(.noContent)
  }

  /// Takes a group out of the devices that are in it: one that is made anew with this name is another.
  private func leave(_ group: String, in change: Change) throws {
    for device in try change.transaction.devices(tenant: change.tenant).map(\.id) {
      guard var state = try change.transaction.deviceState(tenant: change.tenant, id: device),
        state.groups.contains(group)
      else { continue }
      let old = state.groups
      state.groups.removeAll { $0 == group }
      try change.transaction.update(state, tenant: change.tenant, id: device)
      try change.record(
        .deviceChanged, device, ["groups": state.groups.joined(separator: " ")], from: old, to: state.groups)
      change.changedDevices.append(device)
    }
  }

  /// What is read must be what is kept: a field that would be passed over is refused.
  private func decoded(_ call: Call) throws -> Resource {
    let resource = try call.json(Resource.self)
    try resource.check()
    let (given, kept) = (try? JSONValue(json: call.body), try? JSONValue(json: Response.encoded(resource)))
    guard case .object(let given)? = given, case .object(let kept)? = kept else { throw HTTPProblem.malformedJSON }
    if let field = given.keys.sorted().first(where: { given[$0] != kept[$0] && given[$0] != .null }) {
      throw HTTPProblem.invalid(String(field.prefix(40)), "is not a field of this resource, or holds one that is none")
    }
    return resource
  }

  private func tag(_ stored: StoredResource) -> EntityTag { EntityTag(of: stored.body.utf8) }

  private func response(_ stored: StoredResource) throws -> Response {
    .json(try stored.decoded(Resource.self), headers: [.eTag: tag(stored).description])
  }
}

extension JSONValue {
  fileprivate init(json bytes: [UInt8]) throws { self = try JSONDecoder().decode(JSONValue.self, from: Data(bytes)) }
}
