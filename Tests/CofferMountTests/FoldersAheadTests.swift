#if os(Linux)
  import CofferFiles
  @testable import CofferMount
  import Foundation
  import Testing

  /// Folders that are read before a program lists them.
  @Suite(.timeLimit(.minutes(5))) struct FoldersAheadTests {
    /// Folders of so many names each, which says what was read, and may let nobody read.
    private final class Tree: @unchecked Sendable {
      private let condition = NSCondition()
      private var counts: [UInt64: UInt64] = [:]
      private var portions: [(folder: UInt64, cookie: UInt64?)] = []
      private var atHand: Set<UInt64> = []
      private var isShut = false
      private var waitingCount = 0

      let nameCount: UInt64
      init(nameCount: UInt64 = 40) { self.nameCount = nameCount }

      var source: FoldersAhead.Source {
        .init { [self] folder in
          condition.withLock { atHand.contains(folder.value) }
        } read: { [self] folder, cookie, limit in
          condition.withLock {
            waitingCount += 1
            condition.broadcast()
            while isShut { condition.wait() }
            waitingCount -= 1
            portions.append((folder.value, cookie))
            let last = min(nameCount, (cookie ?? 0) + UInt64(limit))
            condition.broadcast()
            if last == (cookie ?? 0) {
              atHand.insert(folder.value)
              return nil
            }
            return last
          }
        }
      }

      func shut() { condition.withLock { isShut = true } }

      func open() {
        condition.withLock {
          isShut = false
          condition.broadcast()
        }
      }

      func waitForReader() { condition.withLock { while waitingCount == 0 { condition.wait() } } }
      func waitUntilRead(_ folder: UInt64) {
        condition.withLock { while !atHand.contains(folder) { condition.wait() } }
      }

      /// In the order in which they were begun.
      var folders: [UInt64] { condition.withLock { portions.filter { $0.cookie == nil }.map(\.folder) } }
      func portionCount(of folder: UInt64) -> Int {
        condition.withLock { portions.filter { $0.folder == folder }.count }
      }
      var isBeingRead: Bool { condition.withLock { waitingCount > 0 } }
      var portionCount: Int { condition.withLock { portions.count } }
    }

    private let root = InodeNumber(value: 1)
    private func number(_ value: UInt64) -> InodeNumber { InodeNumber(value: value) }
    private func numbers(_ values: ClosedRange<UInt64>) -> [InodeNumber] { values.map { InodeNumber(value: $0) } }

    @Test func `what comes next is read to its end, in portions, and nothing twice`() throws {
      let tree = Tree()
      let ahead = try FoldersAhead(tree.source)
      ahead.willList(root)
      ahead.didShow(numbers(2...20), of: root)
      ahead.willList(number(2))
      for folder in UInt64(3)...19 {
        ahead.willList(number(folder))
        tree.waitUntilRead(folder + 1)
      }
      ahead.end()
      #expect(tree.folders == Array(4...20))
      #expect(tree.portionCount == 17 * 3)
    }

    @Test func `what is at hand is not read`() throws {
      let tree = Tree()
      let ahead = try FoldersAhead(tree.source)
      func walk(through last: UInt64) {
        ahead.didShow(numbers(2...5), of: root)
        for folder in 2...last { ahead.willList(number(folder)) }
      }
      walk(through: 3)
      tree.waitUntilRead(4)
      walk(through: 4)
      tree.waitUntilRead(5)
      ahead.end()
      #expect(tree.folders == [4, 5])
    }

    @Test func `what is in a folder comes before what is beside it, and that in its order`() throws {
      let tree = Tree()
      let ahead = try FoldersAhead(tree.source)
      tree.shut()
      ahead.didShow(numbers(1...9), of: InodeNumber(value: 99))
      ahead.willList(number(1))
      ahead.willList(number(2))
      // Is being read.
      tree.waitForReader()
      ahead.willList(number(3))
      ahead.willList(number(4))
      ahead.didShow(numbers(20...29), of: number(4))
      tree.open()
      for folder: UInt64 in [20, 5, 6, 7] { tree.waitUntilRead(folder) }
      ahead.end()
      #expect(tree.folders == [3, 20, 5, 6, 7])
    }

    @Test func `who has come to a folder reads the rest alone`() throws {
      let tree = Tree(nameCount: 1_000_000)
      let ahead = try FoldersAhead(tree.source)
      ahead.didShow(numbers(2...4), of: root)
      tree.shut()
      ahead.willList(number(2))
      ahead.willList(number(3))
      tree.waitForReader()
      ahead.willList(number(4))
      tree.open()
      ahead.end()
      #expect(tree.portionCount == 1)
    }

    @Test func `a large folder is read as far as the limit`() throws {
      let tree = Tree(nameCount: 1_000_000)
      let ahead = try FoldersAhead(tree.source)
      ahead.didShow(numbers(2...6), of: root)
      tree.shut()
      for folder: UInt64 in 2...4 { ahead.willList(number(folder)) }
      tree.open()
      // Two that nobody has come to.
      while !tree.folders.contains(6) { sched_yield() }
      ahead.end()
      #expect(tree.portionCount(of: 5) == FoldersAhead.nameLimit / FoldersAhead.portion)
    }

    @Test func `the end waits for what is being read, and nothing is read afterwards`() throws {
      let tree = Tree()
      let ahead = try FoldersAhead(tree.source)
      ahead.didShow(numbers(2...20), of: root)
      tree.shut()
      ahead.willList(number(2))
      ahead.willList(number(3))
      tree.waitForReader()
      let opening = Thread { tree.open() }
      opening.start()
      ahead.end()
      #expect(!tree.isBeingRead)
      let count = tree.portionCount
      #expect(count >= 1)
      ahead.willList(number(4))
      ahead.willList(number(5))
      #expect(tree.portionCount == count)
    }
  }
#endif
