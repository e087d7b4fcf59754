#if os(Linux)
  @testable import CofferMount
  import Testing

  /// When another thread helps with the requests.
  @Suite struct BacklogTests {
    /// What the rule says of each request in turn.
    private func answers(_ requests: [(requester: UInt32, hasWaited: Bool)]) -> [Bool] {
      var backlog = Backlog()
      return requests.map { backlog.isLong(with: $0.requester, hasWaited: $0.hasWaited) }
    }

    @Test func `four requests in a row that waited, of different threads, call for help once`() {
      #expect(answers((1...9).map { ($0, true) }) == [false, false, false, true, false, false, false, true, false])
    }

    @Test func `two threads that take turns are different threads`() {
      #expect(answers([(1, true), (2, true), (1, true), (2, true)]).last == true)
    }

    @Test func `one thread alone waits for one answer after the other`() {
      #expect(!answers(Array(repeating: (7, true), count: 100)).contains(true))
    }

    @Test func `what the kernel asks by itself counts for nothing`() {
      #expect(!answers(Array(repeating: (0, true), count: 100)).contains(true))
      #expect(answers([(1, true), (0, true), (2, true), (0, true), (3, true), (0, true), (4, true)]).last == true)
    }

    @Test func `a request that was waited for begins anew`() {
      #expect(!answers([(1, true), (2, true), (3, true), (4, false), (5, true), (6, true), (7, true)]).contains(true))
    }
  }
#endif
