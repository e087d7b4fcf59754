import CofferAPI
import CofferCrypto
import CofferPolicy
import CofferServerSQLite
import Foundation
import HTTPTypes
import Hummingbird
import Synchronization
import Testing

@testable import CofferServer

/// A store that takes long: so much waits for it and no more, nothing is lost, and what needs no store goes on.
@Suite struct SlowStoreTests {
  let harness: Harness
  let company: Company
  let store: HeldStore
  let server: PolicyServer

  init() async throws {
    harness = try Harness()
    company = try await harness.company()
    store = HeldStore(harness.store)
    server = PolicyServer(
      store: store, serverKey: harness.directory.serverKey, passwordCost: 14, time: harness.time, log: Harness.silent)
  }

  private func send(
    _ method: HTTPRequest.Method, _ path: String, token: String? = nil, json: String? = nil
  ) async throws -> Reply {
    try await harness.send(method, path, token: token, json: json, through: server.router.buildResponder())
  }

  private final class Order: Sendable {
    private let state = Mutex<[String]>([])

    var parties: [String] { state.withLock { $0 } }
    func add(_ party: String) { state.withLock { $0.append(party) } }
  }

  private func settle(_ isSettled: () -> Bool) async { while !isSettled() { await Task.yield() } }

  /// Decisions of almost a MiB.
  private static func decisions(from first: Int) -> String {
    let text = String(repeating: "x", count: 2_000)
    let entries = (first..<first + 500).map { #"{"number":\#($0),"entry":"\#(text)"}"# }
    return #"{"entries":[\#(entries.joined(separator: ","))]}"#
  }

  @Test func `what waits is bounded by its size, is told to come again beyond that, and is all there afterwards`()
    async throws
  {
    let device = try await company.enroll()
    let token = try await device.token()
    let other = try await harness.company("Other")
    store.hold(writing: true)
    // As much as one company may have waiting, and one that is in the store.
    let size = Self.decisions(from: 1).utf8.count
    let count = StoreLine.Bounds().bytesForParty / size + 1
    let waiting = (0..<count).map { index in
      Task { try await send(.post, "/v1/device/decisions", token: token, json: Self.decisions(from: 1 + index * 500)) }
    }
    await settle { store.heldCount == 1 && server.store.waitingCount == count - 1 }
    let refused = try await send(.post, "/v1/device/decisions", token: token, json: Self.decisions(from: 99_000))
    #expect(refused.status == 503 && refused.problem == "unavailable" && refused.headers[.retryAfter] != nil)
    // Another company still finds a place, and whoever only reads needs none.
    let second = Task { try await send(.post, "/items", token: other.owner, json: Company.item()) }
    await settle { server.store.waitingCount == count }
    #expect(try await send(.get, "/items", token: company.owner).status == 200)
    #expect(try await send(.get, "/ready").status == 200)
    store.hold()
    for task in waiting { #expect(try await task.value.status == 200) }
    #expect(try await second.value.status == 201)
    let complete = try await harness.store.read { try $0.completeDecisions(device: device.enrollment.deviceId) }
    #expect(complete == Int64(count * 500))
    #expect(server.store.waitingCount == 0)
  }

  @Test func `what nobody signed, and a receipt that came before, hold up nobody who changes something`() async throws {
    let (device, other) = (try await company.enroll(), try await company.enroll())
    let path = "/v1/devices/\(device.enrollment.deviceId)/commands"
    _ = try await company.make(path, #"{"kind":"lock"}"#)
    let command = try #require(try await CommandRecordTests.orders(device).last).command
    func token(_ assertion: String) async throws -> Int {
      try await harness.send(
        .post, "/v1/device/token", json: EnrolledDevice.form(assertion), type: "application/x-www-form-urlencoded",
        through: server.router.buildResponder()
      ).status
    }
    let assertions = [
      "a.b.c", try device.assertion(key: other.key), try device.assertion(key: SigningKey()),
      try device.assertion { $0.iss = "nobody" }, try device.assertion { $0.iss = "no\u{0}body" },
      try device.assertion { $0.exp = $0.iat + 301 },
    ]
    for assertion in assertions { #expect(try await token(assertion) == 400) }
    for key in [other.key, SigningKey()] {
      let body = try CommandRecordTests.receipt(device, command, key: key)
      #expect(try await send(.post, "/v1/device/receipts", json: body).status == 400)
    }
    let code = EnrollmentCode(
      secret: [UInt8](repeating: 7, count: 20), fingerprint: company.tenant.keys.root.fingerprint)
    #expect(try await send(.post, "/v1/enroll", json: Company.enrollment(code.secret)).status == 404)
    #expect(store.writeCount == 0)
    let body = try CommandRecordTests.receipt(device, command)
    for _ in 0..<3 { #expect(try await send(.post, "/v1/device/receipts", json: body).status == 204) }
    #expect(store.writeCount == 1)
    #expect(try await token(device.assertion()) == 200)
    #expect(store.writeCount == 2)
  }

  @Test func `who knows a password and not the code does not find out by the store`() async throws {
    let person = try await Person(company)
    let code = try await SessionTests.addSecondFactor(person)
    harness.time.advance(OneTimeCode.step)
    func signIn(_ password: String, _ code: String) async throws -> Int {
      try await send(
        .post, "/v1/session",
        json:
          #"{"company":"\#(company.tenant.name)","email":"\#(person.email)","password":"\#(password)","code":"\#(code)"}"#
      ).status
    }
    let right = code.code(step: OneTimeCode.step(at: harness.time.seconds))
    let wrong = right == "000000" ? "000001" : "000000"
    for (password, code) in [("another password", wrong), ("another password", right), (Person.password, wrong)] {
      #expect(try await signIn(password, code) == 401)
    }
    #expect(store.writeCount == 0)
    #expect(try await signIn(Person.password, right) == 201)
    // Used up: two at the same moment find it unused, and one signs in.
    harness.time.advance(OneTimeCode.step)
    let next = code.code(step: OneTimeCode.step(at: harness.time.seconds))
    store.hold(writing: true)
    let both = (0..<2).map { _ in Task { try await signIn(Person.password, next) } }
    await settle { store.heldCount == 1 && server.store.waitingCount == 1 }
    store.hold()
    var found: [Int] = []
    for task in both { found.append(try await task.value) }
    #expect(found.sorted() == [201, 401])
  }

  @Test func `nobody waits for longer than told, and what was refused did not happen`() async throws {
    store.hold(writing: true)
    let first = Task { try await send(.post, "/items", token: company.owner, json: Company.item("a")) }
    await settle { store.heldCount == 1 }
    let late = Task { try await send(.post, "/items", token: company.owner, json: Company.item("b")) }
    await settle { server.store.waitingCount == 1 }
    for _ in 0..<StoreLine.patience { server.store.tick() }
    #expect(server.store.waitingCount == 1)
    server.store.tick()
    let refused = try await late.value
    #expect(refused.status == 503 && refused.headers[.retryAfter] != nil)
    store.hold()
    #expect(try await first.value.status == 201)
    #expect(try await harness.store.read { try $0.apps(tenant: company.tenant.id) }.map(\.bundleId) == ["a"])
    #expect(try await send(.post, "/items", token: company.owner, json: Company.item("b")).status == 201)
  }

  @Test func `whoever asks how the server is gets an answer`() async throws {
    store.hold(reading: true)
    for path in ["/health", "/ready"] {
      let asked = Task { try await send(.get, path) }
      await settle { server.store.probeCount == 1 }
      for _ in 0..<QueuedStore.probePatience { server.store.tick() }
      #expect(try await asked.value.status == 503)
    }
    store.hold()
    for path in ["/health", "/ready"] { #expect(try await send(.get, path).status == 200) }
    #expect(server.store.probeCount == 0)
  }

  @Test func `a stream stays while the store does not answer, and ends with its token all the same`() async throws {
    let device = try await company.enroll()
    let (reader, task) = try await EventTests.open(device, lastEventID: "1.0")
    let events = harness.server.events
    await settle { events.writing == 0 }
    harness.faults.fail(.unavailable(code: 5))
    for _ in 0..<EventHub.heartbeat { events.tick() }
    await reader.wait(for: "\n:\n\n")
    harness.faults.fail(nil)
    _ = try await company.add()
    await reader.wait(for: "id: 2.0")
    harness.faults.fail(.unavailable(code: 5))
    harness.time.advance(PolicyServer.deviceTokenLifetime)
    await settle { events.writing == 0 }
    for _ in 0..<EventHub.heartbeat { events.tick() }
    try await task.value
  }

  @Test func `pages, forms and what is written after the answer wait as their company, with the bytes of the form`()
    async throws
  {
    let person = try await Person(company)
    let responder = server.router.buildResponder()
    let party = "company \(company.tenant.id)"
    _ = store.takeAskers()
    let page = try await harness.send(
      .get, "/console/settings", headers: [.cookie: person.cookie], through: responder)
    #expect(page.status == 200)
    #expect(store.takeAskers().last?.party == party)
    let form = try #require(
      ConsoleForm(String(decoding: page.body, as: UTF8.self), action: "/console/settings/grace"))
    let text = ConsoleTests.encoded(form.sent + [("csrf", person.csrfToken)])
    let sent = try await harness.send(
      .post, form.action, headers: [.cookie: person.cookie, .fetchSite: "same-origin"], json: text,
      type: "application/x-www-form-urlencoded", through: responder)
    #expect(sent.status == 303, "\(sent.status)")
    let askers = store.takeAskers()
    #expect(askers.last?.party == party && askers.last?.bytes == text.utf8.count, "\(askers)")
    #expect(try await send(.get, "/v1/audit/export", token: company.owner).status == 200)
    let parties = store.takeAskers().map(\.party)
    #expect(parties.last == party && !parties.contains(""), "\(parties)")
    #expect(SignInLimiter.network(of: "2001:db8:1:2:3::4") == SignInLimiter.network(of: "2001:db8:1:2:9::1"))
  }

  @Test func `parties take turns, and none takes all places`() async throws {
    let bounds = StoreLine.Bounds(places: 6, placesForParty: 4, bytes: 100, bytesForParty: 60)
    let line = StoreLine(width: 1, bounds: bounds)
    let order = Order()
    let (gate, open) = AsyncStream.makeStream(of: Void.self)
    func run(_ party: String, bytes: Int = 0) -> Task<Bool, Never> {
      Task {
        await StoreLine.$asker.withValue(StoreLine.Asker(party: party, bytes: bytes)) {
          do {
            try await line.run { order.add(party) }
            return true
          } catch {
            return false
          }
        }
      }
    }
    let first = Task { try await line.run { for await _ in gate { return } } }
    await settle { line.isBusy }
    var tasks: [Task<Bool, Never>] = []
    func wait(_ party: String) async {
      let before = line.waitingCount
      tasks.append(run(party))
      await settle { line.waitingCount == before + 1 }
    }
    for _ in 0..<4 { await wait("a") }
    #expect(await !run("a").value)
    for _ in 0..<2 { await wait("b") }
    #expect(await !run("c").value)
    #expect(await !run("b", bytes: 61).value)
    open.yield()
    try await first.value
    for task in tasks { #expect(await task.value) }
    #expect(order.parties == ["a", "b", "a", "b", "a", "a"])
    #expect(await run("c", bytes: 1_000).value)
  }
}
