#if os(Linux)
  import CofferFiles
  @testable import CofferMount
  import Testing

  /// Which folders a walk through a tree is expected to list next.
  @Suite struct FolderWalkTests {
    private let root = InodeNumber(value: 1)
    private func numbers(_ values: ClosedRange<UInt64>) -> [InodeNumber] { values.map { InodeNumber(value: $0) } }
    private func values(_ coming: [FolderWalk.Coming]) -> [UInt64] { coming.map(\.folder.value) }

    @Test func `whoever looks at one folder is not expected to go on`() {
      var walk = FolderWalk()
      #expect(walk.willList(root).isEmpty)
      #expect(walk.didShow(numbers(2...9), of: root) == nil)
      #expect(walk.willList(root).isEmpty)
    }

    @Test func `those behind a folder follow it, more of them the longer that comes true, each once`() {
      var walk = FolderWalk()
      _ = walk.didShow(numbers(100...199), of: root)
      var told: [UInt64] = []
      for (position, folder) in numbers(100...198).enumerated() {
        let coming = walk.willList(folder)
        #expect(coming.allSatisfy { $0.parent == root })
        told += values(coming)
        // As many as were listed in a row, up to the limit, and none beyond the last.
        #expect(told.last == min(199, folder.value + UInt64(min(position + 1, FolderWalk.depth))))
      }
      #expect(told == Array(101...199))
      // It has been listed, and is not told again before it is shown again.
      #expect(walk.willList(InodeNumber(value: 100)).isEmpty)
      _ = walk.didShow(numbers(100...199), of: root)
      #expect(values(walk.willList(InodeNumber(value: 100))) == [101])
    }

    @Test func `portions of one listing are joined, and a new one begins anew`() {
      var walk = FolderWalk()
      _ = walk.willList(root)
      _ = walk.didShow(numbers(10...12), of: root)
      _ = walk.didShow(numbers(13...14), of: root)
      #expect(values(walk.willList(InodeNumber(value: 12))) == [13])
      _ = walk.willList(root)
      _ = walk.didShow(numbers(10...12), of: root)
      #expect(walk.willList(InodeNumber(value: 12)).isEmpty)
      #expect(values(walk.willList(InodeNumber(value: 10))) == [11])
    }

    @Test func `a walk goes down before it goes on`() {
      var walk = FolderWalk()
      _ = walk.didShow(numbers(10...14), of: root)
      let first = InodeNumber(value: 10)
      #expect(values(walk.willList(first)) == [11])
      let below = walk.didShow(numbers(20...24), of: first)
      #expect(below == FolderWalk.Coming(folder: InodeNumber(value: 20), parent: first))
      // What is further in the same listing is not the next one.
      #expect(walk.didShow(numbers(25...26), of: first) == nil)
      #expect(values(walk.willList(InodeNumber(value: 20))) == [21, 22])
    }

    @Test func `it remembers as much as two generations, however many are shown`() {
      var walk = FolderWalk()
      let count = UInt64(10 * FolderWalk.limit)
      for first in stride(from: 2, through: count, by: 512) { _ = walk.didShow(numbers(first...first + 511), of: root) }
      #expect(walk.willList(InodeNumber(value: 5)).isEmpty)
      #expect(!walk.willList(InodeNumber(value: count - 10)).isEmpty)
      #expect(walk.rememberedCount <= 2 * FolderWalk.limit)
    }

    @Test func `folders that show one another in a circle end nothing`() {
      var walk = FolderWalk()
      let (first, second) = (InodeNumber(value: 7), InodeNumber(value: 8))
      for _ in 0..<50 {
        _ = walk.willList(first)
        _ = walk.didShow([second, first, second], of: first)
        _ = walk.willList(second)
        _ = walk.didShow([first, first], of: second)
      }
      #expect(walk.willList(first).count <= FolderWalk.depth)
    }
  }
#endif
