import CofferTestSupport
import Foundation
import Synchronization
import Testing

@testable import CofferServer

/// Whoever waits for a password to be derived.
@Suite struct FairLineTests {
  private final class Order: Sendable {
    let accounts = Mutex<[String]>([])
    let tasks = Mutex<[Task<Bool, Never>]>([])
  }

  /// A line whose thread is taken until somebody says otherwise.
  private static func taken(
    _ line: FairLine, _ body: (_ enter: (FairLine.Party) -> Task<Bool, Never>) async throws -> Void
  ) async throws -> [String] {
    let order = Order()
    let (gate, open) = AsyncStream.makeStream(of: Void.self)
    let (started, start) = AsyncStream.makeStream(of: Void.self)
    let first = Task {
      try await line.run(FairLine.Party(account: "first", address: "127.0.0.1")) {
        start.yield()
        for await _ in gate { break }
      }
    }
    for await _ in started { break }
    try await body { party in
      let task = Task {
        do {
          try await line.run(party) { order.accounts.withLock { $0.append(party.account) } }
          return true
        } catch {
          return false
        }
      }
      order.tasks.withLock { $0.append(task) }
      return task
    }
    open.yield()
    try await first.value
    for task in order.tasks.withLock({ $0 }) { _ = await task.value }
    return order.accounts.withLock { $0 }
  }

  private static func awaitCount(_ line: FairLine, _ count: Int) async {
    while line.waitingCount < count { await Task.yield() }
  }

  @Test func `one address, and one account, leave room for others`() async throws {
    let line = FairLine()
    _ = try await Self.taken(line) { enter in
      for index in 0..<FairLine.placesForAccount {
        _ = enter(.init(account: "a", address: "192.0.2.\(index)"))
        await Self.awaitCount(line, index + 1)
      }
      #expect(await !enter(.init(account: "a", address: "192.0.2.99")).value)
      for index in 0..<FairLine.placesForAddress {
        _ = enter(.init(account: "\(index)", address: "198.51.100.1"))
        await Self.awaitCount(line, FairLine.placesForAccount + index + 1)
      }
      #expect(await !enter(.init(account: "other", address: "198.51.100.1")).value)
      // A proxy on this machine stands for many.
      for index in 0...FairLine.placesForAddress { _ = enter(.init(account: "proxied \(index)", address: "::1")) }
      await Self.awaitCount(line, FairLine.placesForAccount + 2 * FairLine.placesForAddress + 1)
    }
    #expect(line.waitingCount == 0)
  }

  @Test func `addresses take turns`() async throws {
    let line = FairLine()
    let order = try await Self.taken(line) { enter in
      for (index, account) in ["a1", "a2", "a3", "b1", "c1", "b2"].enumerated() {
        let host = account.hasPrefix("a") ? 1 : account.hasPrefix("b") ? 2 : 3
        _ = enter(.init(account: account, address: "192.0.2.\(host)"))
        await Self.awaitCount(line, index + 1)
      }
    }
    #expect(order == ["a1", "b1", "c1", "a2", "b2", "a3"])
  }

  @Test func `nobody waits for longer than told`() async throws {
    let line = FairLine()
    let order = try await Self.taken(line) { enter in
      let early = enter(.init(account: "early", address: "192.0.2.1"))
      await Self.awaitCount(line, 1)
      line.tick()
      _ = enter(.init(account: "later", address: "192.0.2.1"))
      _ = enter(.init(account: "elsewhere", address: "192.0.2.2"))
      await Self.awaitCount(line, 3)
      for _ in 1...FairLine.patience { line.tick() }
      #expect(await !early.value)
      #expect(line.waitingCount == 2)
    }
    #expect(Set(order) == ["later", "elsewhere"])
  }

  @Test func `all together have a bound`() async throws {
    let line = FairLine()
    _ = try await Self.taken(line) { enter in
      for index in 0..<FairLine.places {
        _ = enter(.init(account: "\(index)", address: "192.0.2.\(index)"))
        await Self.awaitCount(line, index + 1)
      }
      #expect(await !enter(.init(account: "one more", address: "192.0.2.250")).value)
    }
  }
}
