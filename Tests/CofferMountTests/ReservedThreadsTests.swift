#if os(Linux)
  @testable import CofferMount
  import Synchronization
  import Testing

  @Suite struct ReservedThreadsTests {
    private final class Count: Sendable { let count = Atomic(0) }

    @Test func `each thread runs one body, also where they wait for each other`() throws {
      let threads = try ReservedThreads(count: 3)
      let (arrived, sum) = (Count(), Count())
      threads.run(
        (1...3).map { number in
          {
            arrived.count.wrappingAdd(1, ordering: .acquiringAndReleasing)
            while arrived.count.load(ordering: .acquiring) < 3 {}
            sum.count.wrappingAdd(number, ordering: .relaxed)
          }
        })
      threads.wait()
      #expect(sum.count.load(ordering: .relaxed) == 6)
    }

    @Test func `those that are not needed go`() throws {
      let threads = try ReservedThreads(count: 3)
      threads.dismiss()
      threads.wait()
    }
  }
#endif
