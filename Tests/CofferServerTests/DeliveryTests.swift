import CofferAPI
import CofferCrypto
import CofferPolicy
import CofferServerSQLite
import CofferSystem
import CofferTestSupport
import Foundation
import HTTPTypes
import Testing

@testable import CofferServer

/// What devices send arrives twice, late, and in another order.
@Suite struct DeliveryTests {
  struct Shown: Decodable { let report: DeviceReport? }
  struct Lines: Decodable { let lines: [String] }

  private static func report(_ revision: Int, sentAt: Int64?) -> String {
    let sent = sentAt.map { #","sentAt":\#($0)"# } ?? ""
    return #"{"appliedRevision":\#(revision)\#(sent)}"#
  }

  @Test func `of two reports the later one stays, whichever comes last`() async throws {
    let harness = try Harness()
    let company = try await harness.company()
    let device = try await company.enroll()
    let token = try await device.token()
    let path = "/v1/devices/\(device.enrollment.deviceId)"
    func send(_ body: String) async throws -> Int {
      try await harness.send(.put, "/v1/device/report", token: token, json: body).status
    }
    func applied() async throws -> Int64? {
      try await harness.send(.get, path, token: company.auditor).json(Shown.self).report?.appliedRevision
    }
    #expect(try await send(Self.report(2, sentAt: 2_000)) == 204)
    #expect(try await send(Self.report(1, sentAt: 1_000)) == 409)
    #expect(try await applied() == 2)
    // The same again, and one that does not say.
    #expect(try await send(Self.report(2, sentAt: 2_000)) == 204)
    #expect(try await send(Self.report(3, sentAt: nil)) == 204)
    #expect(try await send(Self.report(4, sentAt: 3_000)) == 204)
    // A device whose clock was set back is believed when nothing of before can be on its way any more.
    #expect(try await send(Self.report(5, sentAt: 1_500)) == 409)
    harness.time.advance(Delivery.window)
    #expect(try await send(Self.report(5, sentAt: 1_500)) == 204)
    #expect(try await applied() == 5)
  }

  @Test func `of two logs the later one stays, whichever comes last`() async throws {
    let harness = try Harness()
    let company = try await harness.company()
    let device = try await company.enroll()
    let token = try await device.token()
    func send(_ line: String, _ sentAt: Int64) async throws -> Int {
      let body = #"{"lines":["\#(line)"],"sentAt":\#(sentAt)}"#
      return try await harness.send(.put, "/v1/device/log", token: token, json: body).status
    }
    #expect(try await send("new", 2_000) == 204)
    #expect(try await send("old", 1_999) == 409)
    #expect(try await send("new", 2_000) == 204)
    let path = "/v1/devices/\(device.enrollment.deviceId)/log"
    #expect(try await harness.send(.get, path, token: company.auditor).json(Lines.self).lines == ["new"])
  }

  @Test func `decisions in any order, over and over, come to the same`() async throws {
    let harness = try Harness()
    let company = try await harness.company()
    let device = try await company.enroll()
    let token = try await device.token()
    let seed = UInt64.random(in: 0...UInt64.max)
    var generator = SeededGenerator(seed: seed)
    let portions = stride(from: 1, to: 200, by: 7).map { Array($0..<min($0 + 12, 201)) }
    var last: Int64 = 0
    for portion in (portions + portions).shuffled(using: &generator) {
      let entries = portion.shuffled(using: &generator).map { #"{"number":\#($0),"entry":"entry \#($0)"}"# }
      let reply = try await harness.send(
        .post, "/v1/device/decisions", token: token, json: #"{"entries":[\#(entries.joined(separator: ","))]}"#)
      let complete = try reply.json(DecisionsResponse.self).completeThrough
      #expect(complete >= last, "seed \(seed)")
      last = complete
    }
    let kept = try await harness.store.read {
      try $0.decisions(device: device.enrollment.deviceId, after: 0, limit: 1_000)
    }
    #expect(
      kept.map(\.number) == Array(1...200) && kept.allSatisfy { $0.entry == "entry \($0.number)" }, "seed \(seed)")
    #expect(last == 200)
  }

  @Test func `a receipt counts once, and neither a repetition nor another outcome changes it`() async throws {
    let harness = try Harness()
    let company = try await harness.company()
    let device = try await company.enroll()
    let id = device.enrollment.deviceId
    let first = try await company.make("/v1/devices/\(id)/commands", #"{"kind":"lock"}"#)
    let second = try await company.make("/v1/devices/\(id)/commands", #"{"kind":"refresh"}"#)
    func receipt(_ command: String, _ kind: DeviceCommand.Kind, _ outcome: CommandReceipt.Outcome) throws -> String {
      try CommandReceipt(
        tenant: company.tenant.id, device: id, command: command, kind: kind, outcome: outcome,
        time: harness.time.seconds
      ).signed(with: device.key)
    }
    func send(_ text: String) async throws -> Int {
      try await harness.send(.post, "/v1/device/receipts", json: #"{"receipt":"\#(text)"}"#).status
    }
    let done = try receipt(first, .lock, .done)
    // The later order's first, and both more than once.
    for text in [try receipt(second, .refresh, .done), done, done, try receipt(first, .lock, .failed), done] {
      #expect(try await send(text) == 204)
    }
    let records = try await harness.store.read {
      try $0.commands(tenant: company.tenant.id, device: id, after: 0, limit: 9)
    }
    #expect(records.map(\.value.state) == [.done, .done])
    #expect(records.first?.value.receipt == done)
    #expect(try await company.auditEntries().count { $0.action == "command.answered" } == 2)
  }
}
