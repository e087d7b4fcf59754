import CofferAPI
import CofferClient
import CofferCrypto
import CofferPolicy
import CofferSystem
import Foundation
import NIOCore
import Synchronization
import Testing

/// The link over a real socket, with a server that does what it likes and a clock that the test moves.
struct LinkTests {
  /// A stream of events that a test writes.
  final class Stream: Sendable {
    private let pieces = AsyncStream.makeStream(of: ByteBuffer.self)

    var reply: Reply {
      var reply = Reply(headers: ["content-type": "text/event-stream"])
      reply.pieces = pieces.stream
      return reply
    }

    func send(_ text: String) { pieces.continuation.yield(ByteBuffer(string: text)) }
    func end() { pieces.continuation.finish() }
  }

  /// What a test has in hand.
  struct Bench {
    let company: FakeCompany
    let server: LoopbackServer
    let device: FakeDevice
    let pace: FakePace
    let streams: AsyncStream<Stream>
    let events: AsyncStream<LinkEvent>

    /// Waits for an event.
    func hear(_ isMeant: (LinkEvent) -> Bool) async {
      for await event in events where isMeant(event) { return }
    }
  }

  /// Runs a link with an enrolled device during `body`.
  func linked(
    pace: FakePace = FakePace(), orders: @escaping @Sendable (FakeCompany) -> OrdersResponse? = { _ in nil },
    prepare: (FakeCompany, FakeDevice) -> Void = { _, _ in }, _ body: (Bench) async throws -> Void
  ) async throws {
    let company = FakeCompany()
    let (streams, opened) = AsyncStream.makeStream(of: Stream.self)
    let (events, told) = AsyncStream.makeStream(of: LinkEvent.self)
    let written = Mutex<[Stream]>([])
    company.script("/v1/device/events") { _ in
      let stream = Stream()
      written.withLock { $0.append(stream) }
      opened.yield(stream)
      return stream.reply
    }
    company.script("/v1/device/commands") { _ in
      company.json(
        orders(company) ?? OrdersResponse(commands: [], delegations: [], keyset: company.keyset()))
    }
    for path in ["receipts", "report", "log"] { company.script("/v1/device/\(path)") { _ in Reply(status: 204) } }
    company.script("/v1/device/decisions") { _ in company.json(DecisionsResponse(completeThrough: 1)) }
    try await LoopbackServer.run(company.answer) { server in
      let client = company.client
      let (enrolment, key) = try await client.enroll(url: "http://127.0.0.1:\(server.port)", code: company.code.text)
      let device = FakeDevice(enrolment, key)
      prepare(company, device)
      let link = Task.detached {
        await CompanyLink(device, client: client, pace: pace) { told.yield($0) }.run()
        told.finish()
      }
      defer {
        link.cancel()
        // A server does not end before its answers have.
        for stream in written.withLock({ $0 }) { stream.end() }
      }
      try await body(
        Bench(company: company, server: server, device: device, pace: pace, streams: streams, events: events))
    }
  }

  @Test func `an event wakes, and what is fetched is believed`() async throws {
    try await linked { bench in
      var streams = bench.streams.makeAsyncIterator()
      let stream = try #require(await streams.next())
      await bench.hear { $0 == .confirmed(revision: 5) }
      bench.company.advance()
      // It says another number; the signed policy's counts.
      stream.send("id: 6.0\nevent: change\ndata: {\"revision\":99}\n\n")
      await bench.hear { $0 == .applied(revision: 6) }
      #expect(bench.device.current.enrolment.policy.revision == 6)
    }
  }

  @Test func `a silent stream is closed and opened again, where it ended`() async throws {
    try await linked { bench in
      var streams = bench.streams.makeAsyncIterator()
      let stream = try #require(await streams.next())
      await bench.hear { $0 == .confirmed(revision: 5) }
      bench.company.advance()
      stream.send("id: 6.0\nevent: change\ndata: {}\n\n")
      await bench.hear { $0 == .confirmed(revision: 6) }
      // A sign of life is enough. What follows it on the stream has been read behind it.
      bench.company.advance()
      stream.send(":\n\nid: 7.0\nevent: change\ndata: {}\n\n")
      await bench.hear { $0 == .confirmed(revision: 7) }
      bench.pace.passSilence()
      bench.pace.passSilence()
      await bench.hear { if case .disconnected(.unreachable?, _) = $0 { true } else { false } }
      _ = try #require(await streams.next())
      await bench.hear { $0 == .confirmed(revision: 7) }
      let asks = bench.server.asks.filter { $0.path == "/v1/device/events" }
      // That of the newest event whose work was done.
      #expect(asks.count == 2 && asks[0].headers["last-event-id"] == nil)
      #expect(["6.0", "7.0"].contains(asks[1].headers["last-event-id"]))
    }
  }

  @Test(arguments: [
    String(repeating: "x", count: EventParser.maximumLine + 1),
    String(repeating: "data: \(String(repeating: "x", count: 4000))\n", count: 5), "id: \u{1}\n\n",
    "id: \(String(repeating: "1", count: 65))\n",
  ])
  func `a stream beyond its bounds is left`(text: String) async throws {
    try await linked(pace: FakePace(reconnections: 0)) { bench in
      var streams = bench.streams.makeAsyncIterator()
      let stream = try #require(await streams.next())
      await bench.hear { $0 == .confirmed(revision: 5) }
      stream.send(text)
      await bench.hear { if case .disconnected(.oversizedAnswer?, _) = $0 { true } else { false } }
    }
  }

  static let refusing: @Sendable (FakeCompany, FakeDevice) -> Void = { company, _ in
    company.script("/v1/device/token") { _ in Reply(status: 503) }
  }

  @Test func `what fails is tried again after longer and longer times, up to a bound`() async throws {
    let pace = FakePace(reconnections: 12)
    try await linked(
      pace: pace, prepare: Self.refusing
    ) { bench in
      for _ in 0...12 { await bench.hear { if case .disconnected = $0 { true } else { false } } }
    }
    let seconds: [Duration] = [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300, 300, 300].map { .seconds($0) }
    #expect(Array(pace.waits.prefix(13)) == seconds)
    // Also where the company is there, and something that is wanted of it fails each time.
    for path in ["report", "commands", "decisions"] {
      let pace = FakePace(reconnections: 5)
      let failing: @Sendable (FakeCompany, FakeDevice) -> Void = { company, device in
        device.update { $0.decisions = [.init(number: 1, entry: "{}")] }
        company.script("/v1/device/\(path)") { _ in Reply(status: 503) }
      }
      try await linked(pace: pace, prepare: failing) { bench in
        for _ in 0...5 { await bench.hear { if case .disconnected = $0 { true } else { false } } }
      }
      #expect(pace.waits.prefix(6) == seconds.prefix(6), "\(path)")
    }
    let lucky = FakePace(reconnections: 3, chance: 0)
    try await linked(
      pace: lucky, prepare: Self.refusing
    ) { bench in
      for _ in 0...3 { await bench.hear { if case .disconnected = $0 { true } else { false } } }
    }
    #expect(Array(lucky.waits.prefix(4)) == [.seconds(0.5), .seconds(1), .seconds(2), .seconds(4)])
  }

  @Test func `a server is not asked sooner than it says, nor kept away by what it says`() async throws {
    let pace = FakePace(reconnections: 1)
    try await linked(pace: pace) { bench in
      var streams = bench.streams.makeAsyncIterator()
      for (retry, wait) in [(2_000, Duration.seconds(2)), (999_999_999, .seconds(300))] {
        let stream = try #require(await streams.next())
        await bench.hear { $0 == .confirmed(revision: 5) }
        stream.send("retry: \(retry)\n\nid: 5.1\ndata: {}\n\n")
        await bench.hear { $0 == .confirmed(revision: 5) }
        stream.end()
        await bench.hear { if case .disconnected(nil, wait / .seconds(1)) = $0 { true } else { false } }
      }
    }
  }

  @Test func `a policy that is refused changes nothing, and orders wait`() async throws {
    let older: (FakeCompany, FakeDevice) -> Void = { company, _ in company.update { $0.revision = 4 } }
    try await linked(
      pace: FakePace(reconnections: 0), prepare: older
    ) { bench in
      await bench.hear { event in
        if case .disconnected(.documentRefused(.olderRevision(held: 5, offered: 4))?, _) = event { true } else { false }
      }
      #expect(bench.device.current.enrolment.policy.revision == 5)
      #expect(!bench.server.paths.contains("/v1/device/commands"))
    }
  }
}
