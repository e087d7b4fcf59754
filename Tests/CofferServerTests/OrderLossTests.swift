import CofferAPI
import CofferCrypto
import CofferPolicy
import CofferServerSQLite
import Foundation
import HTTPTypes
import Testing

@testable import CofferServer

/// An order that was given reaches its device, whatever becomes of the keys meanwhile.
@Suite struct OrderLossTests {
  private static func changeKeys(_ company: Company, _ method: HTTPRequest.Method, _ path: String, _ json: String?)
    async throws
  {
    let headers: HTTPFields = [.ifMatch: try await company.tag("/v1/keys")]
    let reply = try await company.harness.send(method, path, token: company.owner, headers: headers, json: json)
    #expect(reply.status == 200)
  }

  @Test func `orders that wait are signed with the new keys, under their old ids`() async throws {
    let harness = try Harness()
    let company = try await harness.company()
    let device = try await company.enroll()
    let path = "/v1/devices/\(device.enrollment.deviceId)/commands"
    let lock = try await company.make(path, #"{"kind":"lock"}"#)
    let wipe = try await company.make(path, #"{"kind":"wipe"}"#)
    let done = try await company.make(path, #"{"kind":"refresh"}"#)
    let refresh = try #require(try await CommandRecordTests.orders(device).last).command
    let receipt = try CommandRecordTests.receipt(device, refresh)
    #expect(refresh.id == done)
    #expect(try await harness.send(.post, "/v1/device/receipts", json: receipt).status == 204)
    func position() async throws -> Int64 {
      try await harness.store.read {
        try $0.lastCommandNumber(tenant: company.tenant.id, device: device.enrollment.deviceId)
      }
    }
    var last = try await position()
    for (method, path, json) in [
      (HTTPRequest.Method.post, "/v1/keys/delegations", #"{"use":"wipe"}"#), (.post, "/v1/keys/rotate", nil),
    ] as [(HTTPRequest.Method, String, String?)] {
      try await Self.changeKeys(company, method, path, json)
      // Each verifies by what the device is given beside it.
      let orders = try await CommandRecordTests.orders(device).map(\.command)
      #expect(Set(orders.map(\.id)) == [lock, wipe])
      // A device that is connected hears of it, and one that reconnects as well.
      let now = try await position()
      #expect(now > last)
      last = now
    }
    // An answer is an answer to both forms of it.
    let command = try #require(try await CommandRecordTests.orders(device).first { $0.command.kind == .wipe }).command
    let body = try CommandRecordTests.receipt(device, command)
    #expect(try await harness.send(.post, "/v1/device/receipts", json: body).status == 204)
    #expect(try await CommandRecordTests.orders(device).map(\.command.id) == [lock])
  }

  @Test func `a wipe that would outlive its delegation gets a new one, and no older wipe is lost by it`() async throws {
    let harness = try Harness()
    let company = try await harness.company()
    let device = try await company.enroll()
    let path = "/v1/devices/\(device.enrollment.deviceId)/commands"
    let first = try await company.make(path, #"{"kind":"wipe"}"#)
    // Most of a year later; the tokens of the company are long over.
    harness.time.advance(Publisher.delegationLifetime - DeviceCommands.lifetimes.upperBound - 86_400)
    let owner = try await harness.administration.createToken(tenant: company.tenant.id, role: .owner).secret.text
    func order() async throws -> String {
      struct Made: Decodable { let id: String }
      let body = #"{"kind":"wipe","expiresIn":\#(DeviceCommands.lifetimes.upperBound)}"#
      let reply = try await harness.send(.post, path, token: owner, json: body)
      #expect(reply.status == 201)
      return try reply.json(Made.self).id
    }
    let second = try await order()
    harness.time.advance(2 * 86_400)
    let third = try await order()
    #expect(Set(try await CommandRecordTests.orders(device).map(\.command.id)) == [second, third])
    #expect(first != second)
  }

  @Test func `no number of small orders keeps a wipe from its device`() async throws {
    let harness = try Harness()
    let company = try await harness.company()
    let device = try await company.enroll()
    let path = "/v1/devices/\(device.enrollment.deviceId)/commands"
    for _ in 0..<DeviceCommands.maximumPending { _ = try await company.make(path, #"{"kind":"refresh"}"#) }
    let more = try await harness.send(.post, path, token: company.owner, json: #"{"kind":"refresh"}"#)
    #expect(more.status == 409)
    for kind in ["wipe", "lock"] { _ = try await company.make(path, #"{"kind":"\#(kind)"}"#) }
  }

  @Test func `a wipe that nobody answered in its time keeps the device's record`() async throws {
    let harness = try Harness()
    let company = try await harness.company()
    let device = try await company.enroll()
    let path = "/v1/devices/\(device.enrollment.deviceId)"
    _ = try await company.make("\(path)/commands", #"{"kind":"wipe","expiresIn":60}"#)
    harness.time.advance(61)
    #expect(try await harness.send(.delete, path, token: company.owner).status == 409)
    #expect(try await harness.send(.delete, "\(path)?abandonWipe=true", token: company.owner).status == 204)
  }

  @Test func `a store whose keys do not open answers 503, and so does a last epoch`() async throws {
    let harness = try Harness()
    let company = try await harness.company()
    let device = try await company.enroll()
    let tag = try await company.tag("/v1/keys")
    let path = "/v1/keys/rotate"
    try await Self.alter(company) { keys in
      TenantKeys(
        root: keys.root, sealedRoot: keys.sealedRoot, signing: keys.signing, sealedSigning: keys.sealedSigning,
        epoch: .max, keyset: keys.keyset, keysetNotAfter: keys.keysetNotAfter)
    }
    let rotated = try await harness.send(
      .post, path, token: company.owner, headers: [.ifMatch: try await company.tag("/v1/keys")])
    #expect(rotated.status == 503)
    #expect(try await company.tag("/v1/keys") != tag)
    try await Self.alter(company) { keys in
      TenantKeys(
        root: keys.root, sealedRoot: keys.sealedRoot, signing: keys.signing, sealedSigning: [0],
        epoch: 1, keyset: keys.keyset, keysetNotAfter: keys.keysetNotAfter)
    }
    let orders = "/v1/devices/\(device.enrollment.deviceId)/commands"
    #expect(try await harness.send(.post, orders, token: company.owner, json: #"{"kind":"lock"}"#).status == 503)
  }

  private static func alter(_ company: Company, _ body: @escaping @Sendable (TenantKeys) -> TenantKeys) async throws {
    try await company.harness.store.write { transaction in
      var tenant = try #require(try transaction.tenant(id: company.tenant.id))
      tenant.keys = body(tenant.keys)
      try transaction.update(tenant)
    }
  }
}
