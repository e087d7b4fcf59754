import CofferAPI
import CofferCrypto
import CofferServerSQLite
import CofferSystem
import Foundation
import HTTPTypes
import Hummingbird
import NIOCore
import NIOEmbedded
import Synchronization
import Testing

@testable import CofferServer

/// Streams of events: who is woken, by what, and what a stream that is not read costs.
@Suite struct EventTests {
  /// Takes what a stream writes, and can be made to wait like a device that does not read.
  final class Reader: ResponseBodyWriter, @unchecked Sendable {
    private struct State {
      var text = ""
      var isStopped = false
      var waiting: [CheckedContinuation<Void, Never>] = []
      var watchers: [(String, CheckedContinuation<Void, Never>)] = []
    }

    private let state = Mutex(State())

    var text: String { state.withLock { $0.text } }
    func stop() { state.withLock { $0.isStopped = true } }

    func go() {
      let waiting = state.withLock { state in
        state.isStopped = false
        defer { state.waiting = [] }
        return state.waiting
      }
      for one in waiting { one.resume() }
    }

    /// Waits until `part` has been written.
    func wait(for part: String) async {
      await withCheckedContinuation { continuation in
        let isThere = state.withLock { state in
          if state.text.contains(part) { return true }
          state.watchers.append((part, continuation))
          return false
        }
        if isThere { continuation.resume() }
      }
    }

    func write(_ buffer: ByteBuffer) async throws {
      await withCheckedContinuation { continuation in
        let goesOn = state.withLock { state in
          if state.isStopped { state.waiting.append(continuation) }
          return !state.isStopped
        }
        if goesOn { continuation.resume() }
      }
      let watchers = state.withLock { state in
        state.text += String(buffer: buffer)
        let text = state.text
        let found = state.watchers.filter { text.contains($0.0) }
        state.watchers.removeAll { text.contains($0.0) }
        return found
      }
      for (_, continuation) in watchers { continuation.resume() }
    }

    func finish(_ trailingHeaders: HTTPFields?) async throws {}
  }

  /// An open stream of `device`.
  static func open(_ device: EnrolledDevice, lastEventID: String? = nil) async throws -> (Reader, Task<Void, any Error>)
  {
    let harness = device.company.harness
    var headers: HTTPFields = [.authorization: "Bearer \(try await device.token())"]
    if let lastEventID { headers[HTTPField.Name("Last-Event-ID")!] = lastEventID }
    let response = try await harness.respond(.get, "/v1/device/events", headers: headers, body: .init(buffer: .init()))
    #expect(response.status == .ok)
    #expect(response.headers[.contentType] == "text/event-stream")
    let reader = Reader()
    let task = Task { try await response.body.write(reader) }
    await reader.wait(for: "retry:")
    return (reader, task)
  }

  @Test func `a change wakes its company's devices and nobody else's`() async throws {
    let harness = try Harness()
    let (company, other) = (try await harness.company(), try await harness.company("Other"))
    let (first, task) = try await Self.open(try await company.enroll())
    let (second, secondTask) = try await Self.open(try await company.enroll())
    let (foreign, foreignTask) = try await Self.open(try await other.enroll())
    for reader in [first, second, foreign] { await reader.wait(for: "id: 1.0\nevent: change\n") }
    _ = try await company.add()
    for reader in [first, second] { await reader.wait(for: #"id: 2.0"# + "\nevent: change\ndata: ") }
    _ = try await other.add()
    await foreign.wait(for: "id: 2.0")
    #expect(!first.text.contains("id: 3.0"))
    // One device's order wakes that device.
    harness.server.events.close()
    for task in [task, secondTask, foreignTask] { try await task.value }
    #expect(first.text.components(separatedBy: "event: change").count == 3)
    #expect(foreign.text.components(separatedBy: "event: change").count == 3)
    #expect(harness.server.events.count == 0)
  }

  @Test func `a company's change moves no stream of another's`() async throws {
    let hub = EventHub()
    let streams = ["a", "b"].map { tenant in
      Subscriber(
        tenant: tenant, device: "d", told: EventPosition(revision: 1, command: 0), channel: NIOAsyncTestingChannel())
    }
    for stream in streams { #expect(hub.add(stream)) }
    hub.wake(tenant: "a", revision: 9)
    hub.wake(tenant: "a", device: "d", command: 3)
    hub.wake(tenant: "a", device: "other", command: 4)
    for stream in streams { stream.beat() }
    #expect(await streams[0].next() == .moved(EventPosition(revision: 9, command: 3)))
    #expect(await streams[1].next() == .heartbeat)
  }

  @Test func `an order wakes the device that it is for`() async throws {
    let harness = try Harness()
    let company = try await harness.company()
    let (device, other) = (try await company.enroll(), try await company.enroll())
    let (reader, task) = try await Self.open(device)
    let (silent, silentTask) = try await Self.open(other)
    for reader in [reader, silent] { await reader.wait(for: "id: 1.0") }
    _ = try await company.make("/v1/devices/\(device.enrollment.deviceId)/commands", #"{"kind":"lock"}"#)
    await reader.wait(for: #"data: {"command":1,"revision":1}"#)
    harness.server.events.close()
    try await task.value
    try await silentTask.value
    #expect(!silent.text.contains(#""command":1"#))
  }

  @Test func `what was missed is told at once, and what is known is not`() async throws {
    let harness = try Harness()
    let company = try await harness.company()
    let device = try await company.enroll()
    _ = try await company.add("a")
    let (behind, task) = try await Self.open(device, lastEventID: "1.0")
    await behind.wait(for: "id: 2.0")
    // A new stream of the same device takes the place of the old one.
    let (present, presentTask) = try await Self.open(device, lastEventID: "2.0")
    try await task.value
    _ = try await company.add("b")
    await present.wait(for: "id: 3.0")
    #expect(!present.text.contains("id: 2.0"))
    for nonsense in ["", "x", "1", "1.2.3", "-", String(repeating: "9", count: 50) + ".0"] {
      let (reader, task) = try await Self.open(device, lastEventID: nonsense)
      await reader.wait(for: "id: 3.0")
      task.cancel()
      _ = await task.result
    }
    presentTask.cancel()
    _ = await presentTask.result
    #expect(harness.server.events.count == 0)
  }

  @Test func `a device that does not read costs one event, is let go, and loses nothing`() async throws {
    let harness = try Harness()
    let company = try await harness.company()
    let device = try await company.enroll()
    let (reader, task) = try await Self.open(device)
    await reader.wait(for: "id: 1.0")
    reader.stop()
    // The first is being written when the others come.
    for index in 0..<20 { _ = try await company.add("app\(index)") }
    reader.go()
    await reader.wait(for: "id: 21.0")
    #expect(reader.text.components(separatedBy: "event: change").count <= 4)

    reader.stop()
    _ = try await company.add("last")
    let events = harness.server.events
    while events.writing == 0 { await Task.yield() }
    for _ in 0...EventHub.patience { events.tick() }
    #expect(events.count == 1)
    // What it waits for is done; the stream ends because it was let go.
    reader.go()
    try await task.value
    #expect(events.count == 0)
    let (again, againTask) = try await Self.open(device, lastEventID: "21.0")
    await again.wait(for: "id: 22.0")
    againTask.cancel()
    _ = await againTask.result
  }

  @Test func `a silent stream shows that it lives`() async throws {
    let harness = try Harness()
    let (reader, task) = try await Self.open(try await harness.company().enroll(), lastEventID: "1.0")
    while harness.server.events.writing > 0 { await Task.yield() }
    for _ in 0..<EventHub.heartbeat { harness.server.events.tick() }
    await reader.wait(for: "\n:\n\n")
    harness.server.events.close()
    try await task.value
    // Nobody begins another while the server stops.
    let company = try await harness.company("Late")
    let device = try await company.enroll()
    let reply = try await harness.send(.get, "/v1/device/events", token: try await device.token())
    #expect(reply.status == 503)
    #expect(try await harness.send(.get, "/ready").status == 503)
  }

  @Test func `a device that was removed hears nothing more`() async throws {
    let harness = try Harness()
    let company = try await harness.company()
    let device = try await company.enroll()
    let (reader, task) = try await Self.open(device)
    await reader.wait(for: "id: 1.0")
    let path = "/v1/devices/\(device.enrollment.deviceId)"
    #expect(try await harness.send(.delete, path, token: company.owner).status == 204)
    try await task.value
    #expect(harness.server.events.count == 0)
  }

  @Test func `a device that is removed while its stream begins gets none`() async throws {
    let harness = try Harness()
    let company = try await harness.company()
    let device = try await company.enroll()
    let headers: HTTPFields = [.authorization: "Bearer \(try await device.token())"]
    let response = try await harness.respond(.get, "/v1/device/events", headers: headers, body: .init(buffer: .init()))
    let path = "/v1/devices/\(device.enrollment.deviceId)"
    #expect(try await harness.send(.delete, path, token: company.owner).status == 204)
    let reader = Reader()
    await #expect(throws: HTTPProblem.self) { try await response.body.write(reader) }
    #expect(reader.text.isEmpty && harness.server.events.count == 0)
  }

  @Test(arguments: [true, false])
  func `a stream ends with the device or the token that it was opened by`(isRemoved: Bool) async throws {
    let harness = try Harness()
    let company = try await harness.company()
    let device = try await company.enroll()
    let (reader, task) = try await Self.open(device, lastEventID: "1.0")
    if isRemoved {
      // By another process: nothing here hears of it.
      let id = device.enrollment.deviceId
      _ = try await harness.store.write { try $0.deleteDevice(tenant: company.tenant.id, id: id) }
    } else {
      harness.time.advance(PolicyServer.deviceTokenLifetime)
    }
    // A stream has a beat only while nothing is being written to it.
    while harness.server.events.writing > 0 { await Task.yield() }
    for _ in 0..<EventHub.heartbeat { harness.server.events.tick() }
    try await task.value
    #expect(!reader.text.contains("\n:\n"))
  }
}
