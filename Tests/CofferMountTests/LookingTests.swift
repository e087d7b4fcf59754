#if os(Linux)
  @testable import CofferMount
  import Testing

  /// Whether a thread looks for the next request before it sleeps.
  @Suite struct LookingTests {
    /// Whether it looks, in as many turns, each of which ends with `end`.
    private func looks(_ looking: inout Looking, _ count: Int, _ end: (inout Looking) -> Void) -> [Bool] {
      (0..<count).map { _ in
        let looks = looking.isWorthwhile()
        if looks { end(&looking) }
        return looks
      }
    }

    @Test func `it looks as long as it finds`() {
      var looking = Looking()
      let looks = looks(&looking, 100) { $0.didFind() }
      #expect(!looks.contains(false))
    }

    @Test func `three misses in a row end it, and it tries again less and less often`() {
      var looking = Looking()
      let looks = looks(&looking, 500) { $0.didMiss() }
      let times = looks.indices.filter { looks[$0] }
      #expect(times == [0, 1, 2, 34, 98, 226, 354, 482])
    }

    @Test func `one find makes it look again`() {
      var looking = Looking()
      _ = looks(&looking, 3) { $0.didMiss() }
      let found = looks(&looking, 32) { $0.didFind() }
      #expect(found == Array(repeating: false, count: 31) + [true])
      let missed = looks(&looking, 3 + 32) { $0.didMiss() }
      #expect(missed == Array(repeating: true, count: 3) + Array(repeating: false, count: 31) + [true])
    }
  }
#endif
