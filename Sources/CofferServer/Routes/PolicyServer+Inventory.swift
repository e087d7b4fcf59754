internal import CofferSystem
internal import Hummingbird

/// A company's devices as its administration sees them.
extension PolicyServer {
  var inventoryRoutes: [Route] {
    [
      Route(.get, "/v1/devices", .reader(listDevices)),
      Route(.delete, "/v1/devices/:id", .changer(removeDevice)),
    ]
  }

  private struct Entry: Encodable {
    let id: String
    let platform: String?
    let enrolledAt: Int64
  }

  @Sendable private func listDevices(_ call: Call, token: APIToken) async throws -> Response {
    let devices = try await store.read { try $0.devices(tenant: token.tenant) }
    return .json(devices.map { Entry(id: $0.id, platform: $0.platform, enrolledAt: $0.enrolledAt) })
  }

  /// Withdraws a device's access: its tokens are unknown from now on, and it gets no other.
  @Sendable private func removeDevice(_ call: Call, token: APIToken) async throws -> Response {
    let id = try call.id()
    guard try await store.write({ try $0.deleteDevice(tenant: token.tenant, id: id) }) else {
      throw HTTPProblem.notFound
    }
    log.notice("tenant \(public: token.tenant): device \(public: id) removed")
    return .plain(.noContent)
  }
}
