import CofferAPI
import CofferCrypto
import CofferPolicy
import CofferServerSQLite
import Foundation
import HTTPTypes
import Testing

@testable import CofferServer

/// Orders to devices with their receipts, what devices report, and what they decided.
@Suite struct CommandRecordTests {
  struct Orders: Decodable {
    let commands: [String]
    let delegations: [String]
    let keyset: String
  }

  struct View: Decodable {
    let id: String
    let state: String
  }

  struct Listed: Decodable { let items: [View] }

  static func orders(_ device: EnrolledDevice) async throws -> [SignedCommand] {
    let company = device.company
    let orders = try await company.harness.send(.get, "/v1/device/commands", token: try await device.token())
      .json(Orders.self)
    let root = company.tenant.keys.root
    let keyset = try SignedKeyset(verifying: orders.keyset, root: root).keyset
    let delegation = try orders.delegations.map {
      try SignedDelegation(verifying: $0, root: root, tenant: company.tenant.id)
    }.first
    return try orders.commands.map {
      try SignedCommand(
        verifying: $0, device: device.enrollment.deviceId, keyset: keyset, delegation: delegation,
        now: company.harness.time.seconds)
    }
  }

  static func receipt(
    _ device: EnrolledDevice, _ command: DeviceCommand, _ outcome: CommandReceipt.Outcome = .done,
    key: SigningKey? = nil
  ) throws -> String {
    let receipt = CommandReceipt(
      tenant: command.tenant, device: command.audience, command: command.id, kind: command.kind, outcome: outcome,
      time: device.company.harness.time.seconds)
    return #"{"receipt":"\#(try receipt.signed(with: key ?? device.key))"}"#
  }

  @Test(arguments: DeviceCommand.Kind.allCases)
  func `an order is signed for its device, and a receipt ends it`(kind: DeviceCommand.Kind) async throws {
    let harness = try Harness()
    let company = try await harness.company()
    let (device, second) = (try await company.enroll(), try await company.enroll())
    let path = "/v1/devices/\(device.enrollment.deviceId)/commands"
    let more = kind == .clearPasscode ? #","clearing":"AAAA""# : ""
    let id = try await company.make(path, #"{"kind":"\#(kind.rawValue)"\#(more)}"#)
    let command = try #require(try await Self.orders(device).first).command
    #expect(command.id == id && command.kind == kind)
    #expect(try await Self.orders(second).isEmpty)
    // Somebody else's receipt, or one of something else, ends nothing.
    var other = command
    other.id = UUID().uuidString.lowercased()
    for body in [
      try Self.receipt(device, command, key: second.key), try Self.receipt(device, command, key: SigningKey()),
      try Self.receipt(device, other),
    ] {
      #expect(try await harness.send(.post, "/v1/device/receipts", json: body).status == 400)
    }
    #expect(try await Self.orders(device).count == 1)
    // A device that wiped itself has no token any more, and its receipt needs none.
    let body = try Self.receipt(device, command)
    #expect(try await harness.send(.post, "/v1/device/receipts", json: body).status == 204)
    #expect(try await Self.orders(device).isEmpty)
    // Answered is answered.
    #expect(try await harness.send(.post, "/v1/device/receipts", json: body).status == 204)
    let late = try Self.receipt(device, command, .failed)
    #expect(try await harness.send(.post, "/v1/device/receipts", json: late).status == 204)
    let history = try await harness.send(.get, path, token: company.auditor).json(Listed.self)
    #expect(history.items.map(\.state) == ["done"])
    let actions = try await company.auditEntries().map(\.action)
    #expect(actions.filter { $0 == "command.answered" }.count == 1)
  }

  @Test func `a wipe is signed by a key that the root delegated for it, and by no other`() async throws {
    let harness = try Harness()
    let company = try await harness.company()
    let device = try await company.enroll()
    let path = "/v1/devices/\(device.enrollment.deviceId)/commands"
    _ = try await company.make(path, #"{"kind":"wipe"}"#)
    let wipe = try #require(try await Self.orders(device).first)
    let tenant = try #require(try await harness.store.read { try $0.tenant(id: company.tenant.id) })
    #expect(wipe.document.keyID != tenant.keys.signing.keyID)
    let keyset = try SignedKeyset(verifying: tenant.keys.keyset, root: tenant.keys.root).keyset
    #expect(throws: PolicyRefusal.self) {
      try SignedCommand(
        verifying: wipe.document.text, device: device.enrollment.deviceId, keyset: keyset, delegation: nil, now: 0)
    }
    // The company's online key cannot order one, not even with the delegation beside it.
    let signing = try KeySealing(serverKey: harness.directory.serverKey)
      .open(tenant.keys.sealedSigning, tenant: tenant.id, use: .signing)
    let forged = try SignedCommand(issuing: wipe.command, key: signing).document.text
    let delegation = try SignedDelegation(
      verifying: tenant.delegations[0].document, root: tenant.keys.root, tenant: tenant.id)
    func verify(_ text: String, device id: String, now: Int64) throws -> SignedCommand {
      try SignedCommand(verifying: text, device: id, keyset: keyset, delegation: delegation, now: now)
    }
    let (id, now) = (device.enrollment.deviceId, harness.time.seconds)
    #expect(throws: PolicyRefusal.unknownKey(.command)) { try verify(forged, device: id, now: now) }
    #expect(throws: PolicyRefusal.otherAudience) { try verify(wipe.document.text, device: "other", now: now) }
    #expect(throws: PolicyRefusal.self) { try verify(wipe.document.text, device: id, now: wipe.command.notAfter + 1) }
    #expect(try verify(wipe.document.text, device: id, now: now).command.kind == .wipe)
  }

  @Test func `a device is not removed while a wipe waits for it, unless that is said`() async throws {
    let harness = try Harness()
    let company = try await harness.company()
    let device = try await company.enroll()
    let path = "/v1/devices/\(device.enrollment.deviceId)"
    let id = try await company.make("\(path)/commands", #"{"kind":"wipe"}"#)
    #expect(try await harness.send(.delete, path, token: company.owner).status == 409)
    let command = try #require(try await Self.orders(device).first).command
    #expect(try await harness.send(.delete, "\(path)/commands/\(id)", token: company.owner).status == 204)
    #expect(try await Self.orders(device).isEmpty)
    #expect(try await harness.send(.delete, "\(path)/commands/\(id)", token: company.owner).status == 409)
    // The device may have carried it out all the same.
    let late = try Self.receipt(device, command)
    #expect(try await harness.send(.post, "/v1/device/receipts", json: late).status == 204)
    _ = try await company.make("\(path)/commands", #"{"kind":"wipe","expiresIn":60}"#)
    #expect(try await harness.send(.delete, path, token: company.owner).status == 409)
    #expect(try await harness.send(.delete, "\(path)?abandonWipe=true", token: company.owner).status == 204)
    #expect(try await company.auditEntries().last?.details == ["abandoned": "wipe"])
    // What was ordered is still there to be read.
    let history = try await harness.send(.get, "\(path)/commands", token: company.auditor).json(Listed.self)
    #expect(history.items.map(\.state) == ["done", "pending"])
  }

  private static func join(_ company: Company, _ path: String, _ groups: String, _ tag: String) async throws -> Int {
    let reply = try await company.harness.send(
      .put, path, token: company.editor, headers: [.ifMatch: tag], json: #"{"groups":[\#(groups)]}"#)
    return reply.status
  }

  @Test func `a device's report shows beside what the company wants`() async throws {
    struct Device: Decodable {
      struct Report: Decodable {
        let appliedRevision: Int64?
        let settings: [String: String]?
      }
      let lastSeenAt: Int64?
      let desiredRevision: Int64
      let groups: [String]
      let report: Report?
    }
    let harness = try Harness()
    let company = try await harness.company()
    let device = try await company.enroll()
    let path = "/v1/devices/\(device.enrollment.deviceId)"
    func show() async throws -> Device { try await harness.send(.get, path, token: company.auditor).json() }
    #expect(try await show().report == nil)
    let body = #"{"osVersion":"6.1","isPasscodeSet":true,"appliedRevision":1,"settings":{"lockDelay":"honoured"}}"#
    let token = try await device.token()
    #expect(try await harness.send(.put, "/v1/device/report", token: token, json: body).status == 204)
    _ = try await company.add()
    let shown = try await show()
    #expect(shown.desiredRevision == 2 && shown.report?.appliedRevision == 1)
    #expect(shown.report?.settings == ["lockDelay": "honoured"] && shown.lastSeenAt == harness.time.seconds)
    for invalid in [
      #"{"osVersion":""}"#, #"{"appliedRevision":0}"#, #"{"settings":{"a":"maybe"}}"#, #"{"version":7}"#,
      #"{"appliedDigest":"x"}"#,
    ] {
      #expect(try await harness.send(.put, "/v1/device/report", token: token, json: invalid).status == 422)
    }
    _ = try await company.make("/v1/groups", #"{"id":"sales","name":"Sales"}"#)
    let tag = try await company.tag(path)
    #expect(try await Self.join(company, path, #""none""#, tag) == 422)
    #expect(try await Self.join(company, path, #""sales""#, tag) == 200)
    #expect(try await Self.join(company, path, "", tag) == 412)
    #expect(try await show().groups == ["sales"])
  }

  private struct Received: Decodable { let completeThrough: Int64 }

  private static func decided(
    _ harness: Harness, _ token: String, _ numbers: [Int], _ text: String = "{}"
  ) async throws -> Int64 {
    let entries = numbers.map { #"{"number":\#($0),"entry":"\#(text)"}"# }.joined(separator: ",")
    let reply = try await harness.send(
      .post, "/v1/device/decisions", token: token, json: #"{"entries":[\#(entries)]}"#)
    return try reply.json(Received.self).completeThrough
  }

  @Test func `what a device kept back of its decisions shows as a gap`() async throws {
    struct View: Decodable {
      struct Gap: Decodable, Equatable {
        let from: Int64
        let through: Int64
      }
      struct Entry: Decodable {
        let number: Int64
        let entry: String
      }
      let items: [Entry]
      let gaps: [Gap]
    }
    let harness = try Harness()
    let company = try await harness.company()
    let device = try await company.enroll()
    let token = try await device.token()
    #expect(try await Self.decided(harness, token, [2, 3, 7]) == 0)
    #expect(try await Self.decided(harness, token, [1]) == 3)
    #expect(try await Self.decided(harness, token, [1], "changed") == 3)
    let path = "/v1/devices/\(device.enrollment.deviceId)/decisions"
    let view = try await harness.send(.get, path, token: company.auditor).json(View.self)
    #expect(view.items.map(\.number) == [1, 2, 3, 7])
    #expect(view.gaps == [.init(from: 4, through: 6)])
    #expect(view.items.allSatisfy { $0.entry == "{}" })
    #expect(try await Self.decided(harness, token, [4, 5, 6]) == 7)
  }
}
