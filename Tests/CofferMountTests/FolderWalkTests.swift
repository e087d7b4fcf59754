#if os(Linux)
  import CofferFiles
  @testable import CofferMount
  import Testing

  /// Which folders a walk through a tree is expected to list next.
  @Suite struct FolderWalkTests {
    private let root = InodeNumber(value: 1)
    private func numbers(_ values: ClosedRange<UInt64>) -> [InodeNumber] { values.map { InodeNumber(value: $0) } }
    private func values(_ coming: [FolderWalk.Coming]) -> [UInt64] { coming.map(\.folder.value) }

    @Test func `whoever looks at one folder, or into one of those in it, is not expected to go on`() {
      var walk = FolderWalk()
      #expect(walk.willList(root).isEmpty)
      #expect(walk.didShow(numbers(2...9), of: root) == nil)
      #expect(walk.willList(root).isEmpty)
      #expect(walk.willList(InodeNumber(value: 5)).isEmpty)
      #expect(walk.didShow(numbers(20...29), of: InodeNumber(value: 5)) == nil)
      #expect(walk.willList(InodeNumber(value: 7)).isEmpty)
    }

    @Test func `those behind a folder follow it, more of them the longer that comes true, each once`() {
      var walk = FolderWalk()
      _ = walk.didShow(numbers(100...199), of: root)
      var told: [UInt64] = []
      for (position, folder) in numbers(100...198).enumerated() {
        let coming = walk.willList(folder)
        #expect(coming.allSatisfy { $0.parent == root })
        told += values(coming)
        // As many as were listed in a row before, up to the limit, and none beyond the last.
        #expect(told.last == (position == 0 ? nil : min(199, folder.value + UInt64(min(position, FolderWalk.depth)))))
      }
      #expect(told == Array(102...199))
      // It has been listed, and is not told again before it is shown again.
      #expect(walk.willList(InodeNumber(value: 101)).isEmpty)
      _ = walk.didShow(numbers(100...199), of: root)
      _ = walk.willList(InodeNumber(value: 100))
      #expect(values(walk.willList(InodeNumber(value: 101))) == [102])
    }

    @Test func `portions of one listing are joined, also while others are listed, and a new one begins anew`() {
      var walk = FolderWalk()
      let other = InodeNumber(value: 500)
      _ = walk.willList(root)
      _ = walk.didShow(numbers(10...12), of: root)
      _ = walk.didShow(numbers(510...519), of: other)
      _ = walk.didShow(numbers(13...14), of: root)
      _ = walk.didShow(numbers(520...529), of: other)
      for (second, next) in [(UInt64(12), UInt64(13)), (519, 520)] {
        _ = walk.willList(InodeNumber(value: second - 1))
        #expect(values(walk.willList(InodeNumber(value: second))) == [next])
      }
      _ = walk.willList(root)
      _ = walk.didShow(numbers(10...12), of: root)
      _ = walk.willList(InodeNumber(value: 11))
      #expect(walk.willList(InodeNumber(value: 12)).isEmpty)
    }

    @Test func `a walk goes down before it goes on`() {
      var walk = FolderWalk()
      _ = walk.didShow(numbers(10...14), of: root)
      _ = walk.willList(InodeNumber(value: 10))
      let second = InodeNumber(value: 11)
      #expect(values(walk.willList(second)) == [12])
      let below = walk.didShow(numbers(20...24), of: second)
      #expect(below == FolderWalk.Coming(folder: InodeNumber(value: 20), parent: second))
      // What is further in the same listing is not the next one.
      #expect(walk.didShow(numbers(25...26), of: second) == nil)
      #expect(values(walk.willList(InodeNumber(value: 20))) == [21, 22])
    }

    @Test func `it remembers as much as two generations, however many are shown`() {
      var walk = FolderWalk()
      let count = UInt64(10 * FolderWalk.limit)
      for first in stride(from: 2, through: count, by: 512) { _ = walk.didShow(numbers(first...first + 511), of: root) }
      for (first, isRemembered) in [(UInt64(5), false), (count - 10, true)] {
        _ = walk.willList(InodeNumber(value: first))
        #expect(walk.willList(InodeNumber(value: first + 1)).isEmpty == !isRemembered)
      }
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
