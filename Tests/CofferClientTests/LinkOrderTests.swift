import CofferAPI
import CofferClient
import CofferCrypto
import CofferPolicy
import CofferSystem
import Foundation
import Synchronization
import Testing

/// Orders and what a device tells, through the link.
extension LinkTests {
  static func order(
    _ kind: DeviceCommand.Kind, _ id: String, key: SigningKey, audience: String = FakeCompany.device,
    until notAfter: Int64 = 1_900_000_000
  ) -> String {
    let command = DeviceCommand(
      tenant: "acme", audience: audience, id: id, kind: kind, issuedAt: 1, notAfter: notAfter)
    return try! SignedCommand(issuing: command, key: key).document.text
  }

  static func delegation(of key: SigningKey, root: SigningKey) -> String {
    let delegation = Delegation(
      tenant: "acme", use: .wipe, key: key.verifyingKey.text, issuedAt: 1, notAfter: 1_900_000_000)
    return try! SignedDelegation(issuing: delegation, root: root).document.text
  }

  /// The claims of the receipts that the server got.
  func receipts(_ bench: Bench) throws -> [[String: String]] {
    try bench.server.asks.filter { $0.path == "/v1/device/receipts" }.map { ask in
      let text = try JSONDecoder().decode(ReceiptRequest.self, from: Data(ask.body)).receipt
      let payload = try #require(Base64URL.decode(text.split(separator: ".")[1]))
      let claims = try #require(try JSONSerialization.jsonObject(with: Data(payload)) as? [String: Any])
      return claims.compactMapValues { $0 as? String }
    }
  }

  @Test func `each order is carried out once and answered once, however often it comes`() async throws {
    let orders: @Sendable (FakeCompany) -> OrdersResponse = { company in
      let key = company.current.key
      return OrdersResponse(
        commands: [Self.order(.lock, "a", key: key), Self.order(.refresh, "b", key: key)], delegations: [],
        keyset: company.keyset())
    }
    try await linked(orders: orders) { bench in
      var streams = bench.streams.makeAsyncIterator()
      let stream = try #require(await streams.next())
      await bench.hear { $0 == .order(.refresh, .done) }
      bench.company.advance()
      stream.send("id: 6.1\ndata: {}\n\n")
      await bench.hear { $0 == .confirmed(revision: 6) }
      bench.company.advance()
      stream.send("id: 7.1\ndata: {}\n\n")
      await bench.hear { $0 == .confirmed(revision: 7) }
      #expect(bench.device.current.carriedOut.map(\.id) == ["a"])
      #expect(try receipts(bench).map { $0["command"] } == ["a", "b"])
      #expect(try receipts(bench).allSatisfy { $0["outcome"] == "done" })
    }
  }

  @Test func `forged, foreign, expired orders and those of the wrong key are neither done nor answered`() async throws {
    let (delegated, stranger) = (SigningKey(), SigningKey())
    let orders: @Sendable (FakeCompany) -> OrdersResponse = { company in
      let key = company.current.key
      return OrdersResponse(
        commands: [
          Self.order(.lock, "forged", key: stranger), Self.order(.lock, "other", key: key, audience: "device-2"),
          Self.order(.lock, "expired", key: key, until: company.current.now - 1),
          Self.order(.wipe, "keyset", key: key), Self.order(.wipe, "stranger", key: stranger),
          Self.order(.lock, "delegated", key: delegated), "not an order", Self.order(.lock, "good", key: key),
        ],
        delegations: [
          Self.delegation(of: delegated, root: company.root), Self.delegation(of: stranger, root: stranger),
        ], keyset: company.keyset())
    }
    try await linked(orders: orders) { bench in
      var refused: [PolicyRefusal] = []
      for await event in bench.events {
        if case .orderRefused(let refusal) = event { refused.append(refusal) }
        if event == .order(.lock, .done) { break }
      }
      #expect(
        refused == [
          .unknownKey(.command), .otherAudience, .expired(.command), .unknownKey(.command), .unknownKey(.command),
          .unknownKey(.command), .malformed("command"),
        ])
      #expect(bench.device.current.carriedOut.map(\.id) == ["good"])
      #expect(bench.device.current.wipeReceipts.isEmpty)
    }
  }

  @Test func `an order whose process was killed is not carried out again, and is answered`() async throws {
    let orders: @Sendable (FakeCompany) -> OrdersResponse = { company in
      let key = company.current.key
      return OrdersResponse(
        commands: [Self.order(.lock, "a", key: key), Self.order(.uploadLog, "b", key: key)], delegations: [],
        keyset: company.keyset())
    }
    let begun: (FakeCompany, FakeDevice) -> Void = { _, device in
      device.update { state in
        for (id, kind, clearing) in [
          ("a", DeviceCommand.Kind.lock, nil), ("b", .uploadLog, nil), ("c", .clearPasscode, [1]),
          ("d", .clearPasscode, [2]),
        ] as [(String, DeviceCommand.Kind, [UInt8]?)] {
          state.book.begin(
            DeviceCommand(
              tenant: "acme", audience: FakeCompany.device, id: id, kind: kind, issuedAt: 1, notAfter: 1_900_000_000,
              clearing: clearing.map { Base64URL.encode($0) }))
        }
        state.taken = [Digest.sha256([1] as [UInt8]).hexadecimal]
      }
    }
    try await linked(orders: orders, prepare: begun) { bench in
      await bench.hear { $0 == .order(.lock, .done) }
      await bench.hear { $0 == .order(.uploadLog, .failed) }
      // One clearing was taken before the process ended.
      await bench.hear { $0 == .order(.clearPasscode, .done) }
      await bench.hear { $0 == .order(.clearPasscode, .failed) }
      var streams = bench.streams.makeAsyncIterator()
      let stream = try #require(await streams.next())
      bench.company.advance()
      stream.send("id: 6.1\ndata: {}\n\n")
      await bench.hear { $0 == .confirmed(revision: 6) }
      #expect(bench.device.current.carriedOut.isEmpty)
      #expect(try receipts(bench).map { $0["outcome"] } == ["done", "failed", "done", "failed"])
    }
  }

  @Test func `what cannot be remembered is not carried out, but for a lock, which waits for its answer`() async throws {
    let full: (FakeCompany, FakeDevice) -> Void = { _, device in device.update { $0.cannotKeep = true } }
    let orders: @Sendable (FakeCompany) -> OrdersResponse = { company in
      let key = company.current.key
      return OrdersResponse(
        commands: [Self.order(.uploadLog, "a", key: key), Self.order(.lock, "b", key: key)], delegations: [],
        keyset: company.keyset())
    }
    try await linked(
      pace: FakePace(reconnections: 0), orders: orders, prepare: full
    ) { bench in
      await bench.hear { if case .disconnected(.deviceFailed?, _) = $0 { true } else { false } }
      #expect(bench.device.current.carriedOut.map(\.id) == ["b"])
      let sent = try receipts(bench)
      #expect(sent.isEmpty)
    }
  }

  @Test(arguments: ["proxy", "other problem", "company"])
  func `only the company's own word ends a receipt that it does not take`(whose: String) async throws {
    let answer: (FakeCompany, FakeDevice) -> Void = { company, _ in
      let name = whose == "other problem" ? "malformed-request" : "invalid-receipt"
      var reply = company.problem(name, 400)
      if whose != "proxy" { reply.headers = ["content-type": "application/problem+json; charset=utf-8"] }
      let answer = reply
      company.script("/v1/device/receipts") { _ in answer }
    }
    let orders: @Sendable (FakeCompany) -> OrdersResponse = { company in
      OrdersResponse(
        commands: [Self.order(.refresh, "a", key: company.current.key)], delegations: [], keyset: company.keyset())
    }
    try await linked(orders: orders, prepare: answer) { bench in
      await bench.hear { $0 == .order(.refresh, .done) }
      var streams = bench.streams.makeAsyncIterator()
      let stream = try #require(await streams.next())
      for revision: Int64 in 6...7 {
        bench.company.advance()
        stream.send("id: \(revision).1\ndata: {}\n\n")
        await bench.hear { $0 == .confirmed(revision: revision) }
      }
      // The company's own ends it with the first one; anybody else's is asked again, and keeps nothing else back.
      let sent = try receipts(bench).count
      #expect(whose == "company" ? sent == 1 : sent > 1, "\(sent)")
      #expect(bench.device.current.book.undelivered.isEmpty == (whose == "company"))
    }
  }

  @Test func `a copy that can only be read hears what takes something away, and says nothing`() async throws {
    let delegated = SigningKey()
    let isWipeDue = Mutex(false)
    let readOnly: (FakeCompany, FakeDevice) -> Void = { _, device in
      device.update { ($0.isReadOnly, $0.cannotKeep, $0.cannotTake) = (true, true, true) }
    }
    let orders: @Sendable (FakeCompany) -> OrdersResponse = { company in
      let key = company.current.key
      let wipe = isWipeDue.withLock { $0 } ? [Self.order(.wipe, "w", key: delegated)] : []
      return OrdersResponse(
        commands: [Self.order(.lock, "l", key: key), Self.order(.uploadLog, "u", key: key)] + wipe,
        delegations: [Self.delegation(of: delegated, root: company.root)], keyset: company.keyset())
    }
    try await linked(orders: orders, prepare: readOnly) { bench in
      var streams = bench.streams.makeAsyncIterator()
      let stream = try #require(await streams.next())
      // It stays connected; unlocked again, the lock is not carried out once more.
      stream.send("id: 5.1\ndata: {}\n\n")
      while bench.server.paths.count(where: { $0 == "/v1/device/commands" }) < 2 { await Task.yield() }
      isWipeDue.withLock { $0 = true }
      stream.send("id: 5.2\ndata: {}\n\n")
      await bench.hear { $0 == .order(.wipe, .done) }
      #expect(bench.device.current.carriedOut.map(\.id) == ["l"])
      #expect(bench.device.current.wipeReceipts.count == 1)
      #expect(!bench.server.paths.contains { ["/v1/device/report", "/v1/device/receipts"].contains($0) })
    }
  }

  @Test(arguments: [false, true])
  func `a device that can store nothing, or not report, is wiped all the same`(isReportRefused: Bool) async throws {
    let delegated = SigningKey()
    let broken: (FakeCompany, FakeDevice) -> Void = { company, device in
      if isReportRefused {
        company.script("/v1/device/report") { _ in Reply(status: 500) }
      } else {
        device.update { ($0.cannotTake, $0.cannotKeep) = (true, true) }
      }
    }
    let orders: @Sendable (FakeCompany) -> OrdersResponse = { company in
      OrdersResponse(
        commands: [
          Self.order(.wipe, "forged", key: company.current.key), Self.order(.lock, "l", key: company.current.key),
          Self.order(.wipe, "w", key: delegated),
        ],
        delegations: [Self.delegation(of: delegated, root: company.root)], keyset: company.keyset())
    }
    try await linked(pace: FakePace(reconnections: 0), orders: orders, prepare: broken) { bench in
      await bench.hear { $0 == .order(.wipe, .done) }
      #expect(bench.device.current.wipeReceipts.count == 1)
      #expect(bench.device.current.carriedOut.map(\.id) == ["l"])
    }
  }

  @Test func `a wipe ends the link, and its receipt is made before`() async throws {
    let delegated = SigningKey()
    let orders: @Sendable (FakeCompany) -> OrdersResponse = { company in
      OrdersResponse(
        commands: [Self.order(.wipe, "w", key: delegated), Self.order(.lock, "later", key: company.current.key)],
        delegations: [Self.delegation(of: delegated, root: company.root)], keyset: company.keyset())
    }
    try await linked(orders: orders) { bench in
      await bench.hear { $0 == .wiped }
      let receipt = try #require(bench.device.current.wipeReceipts.first)
      let key = try bench.device.deviceKey().verifyingKey
      let command = DeviceCommand(
        tenant: "acme", audience: FakeCompany.device, id: "w", kind: .wipe, issuedAt: 1, notAfter: 2)
      #expect(try CommandReceipt(verifying: receipt, of: command, key: key).outcome == .done)
      #expect(bench.device.current.carriedOut.isEmpty)
    }
  }

  @Test func `a proxy that refuses decisions keeps none of them from the company`() async throws {
    let isRefused = Atomic(true)
    let prepare: @Sendable (FakeCompany, FakeDevice) -> Void = { company, device in
      device.update { $0.decisions = [.init(number: 1, entry: "{}")] }
      company.script("/v1/device/decisions") { _ in
        isRefused.exchange(false, ordering: .relaxed)
          ? Reply(status: 422) : company.json(DecisionsResponse(completeThrough: 1))
      }
    }
    try await linked(pace: FakePace(reconnections: 1), prepare: prepare) { bench in
      await bench.hear { if case .disconnected(.unexpectedAnswer(status: 422)?, _) = $0 { true } else { false } }
      var streams = bench.streams.makeAsyncIterator()
      _ = await streams.next()
      let stream = try #require(await streams.next())
      await bench.hear { $0 == .confirmed(revision: 5) }
      stream.send("id: 5.1\ndata: {}\n\n")
      await bench.hear { $0 == .confirmed(revision: 5) }
      #expect(bench.device.current.decisions.isEmpty)
    }
  }

  @Test func `a company that takes no more decisions is asked no more`() async throws {
    let prepare: @Sendable (FakeCompany, FakeDevice) -> Void = { company, device in
      device.update { $0.decisions = [.init(number: 1, entry: "{}")] }
      company.script("/v1/device/decisions") { _ in
        var reply = company.problem(Problem.invalidFields, 422)
        reply.headers = ["content-type": "application/problem+json; charset=utf-8"]
        return reply
      }
    }
    try await linked(prepare: prepare) { bench in
      var streams = bench.streams.makeAsyncIterator()
      let stream = try #require(await streams.next())
      for _ in 0..<3 {
        await bench.hear { $0 == .confirmed(revision: 5) }
        stream.send("id: 5.1\ndata: {}\n\n")
      }
      await bench.hear { $0 == .confirmed(revision: 5) }
      #expect(bench.server.paths.count { $0 == "/v1/device/decisions" } == 1)
      #expect(bench.device.current.decisions.count == 1)
    }
  }

  @Test func `decisions are sent until there are none, and the report when it has changed`() async throws {
    let decided: (FakeCompany, FakeDevice) -> Void = { _, device in
      device.update { $0.decisions = [.init(number: 1, entry: "{}"), .init(number: 2, entry: "{}")] }
    }
    try await linked(prepare: decided) { bench in
      var streams = bench.streams.makeAsyncIterator()
      let stream = try #require(await streams.next())
      for revision: Int64 in 6...7 {
        bench.company.advance()
        stream.send("id: \(revision).1\ndata: {}\n\n")
        await bench.hear { $0 == .confirmed(revision: revision) }
      }
      // The connection's own work is one thing after another: this is asked behind what was done before.
      bench.company.advance()
      stream.send("id: 8.1\ndata: {}\n\n")
      await bench.hear { $0 == .confirmed(revision: 8) }
      #expect(bench.device.current.decisions.isEmpty)
      #expect(bench.server.paths.count { $0 == "/v1/device/decisions" } == 1)
      let reported = bench.server.asks.filter { $0.path == "/v1/device/report" }.compactMap {
        (try? JSONDecoder().decode(DeviceReport.self, from: Data($0.body)))?.appliedRevision
      }
      #expect(Array(reported.prefix(2)).contains(7) || reported.contains(7))
      #expect(reported == reported.sorted() && Set(reported).count == reported.count)
    }
  }
}
