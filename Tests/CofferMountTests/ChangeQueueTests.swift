#if os(Linux)
  @testable import CofferMount
  import Foundation
  import Synchronization
  import Testing

  /// What a kernel is told of others' changes, and who waits for it.
  @Suite struct ChangeQueueTests {
    /// A kernel that notes what it is told, and takes nothing while it is held.
    private final class Kernel: @unchecked Sendable {
      private let condition = NSCondition()
      private var isHeld = false
      private var isWaiting = false
      private var changes: [KernelChange] = []
      private var refusals = 0

      var told: [KernelChange] { condition.withLock { changes } }

      func tell(_ change: KernelChange) -> Bool {
        condition.withLock {
          while isHeld {
            isWaiting = true
            condition.broadcast()
            condition.wait()
          }
          changes.append(change)
          condition.broadcast()
          refusals -= 1
          return refusals < 0
        }
      }

      /// Does not know what the next tellings are about.
      func refuse(_ count: Int) { condition.withLock { refusals = count } }

      func waitUntilTold(_ count: Int) { condition.withLock { while changes.count < count { condition.wait() } } }

      func hold() { condition.withLock { isHeld = true } }

      func release() {
        condition.withLock {
          isHeld = false
          condition.broadcast()
        }
      }

      /// Returns when somebody stands before it.
      func waitUntilAsked() { condition.withLock { while !isWaiting { condition.wait() } } }
    }

    @Test func `a kernel that takes nothing makes the queue no longer than what has changed`() throws {
      let kernel = Kernel()
      let queue = try ChangeQueue(kernel.tell)
      kernel.hold()
      queue.add([.content(1)])
      kernel.waitUntilAsked()
      let names = (0..<3 as Range<UInt8>).map { KernelChange.name([$0], in: 7) }
      var tickets: [ChangeQueue.Ticket] = []
      // Any range of a file within what waits, in the place of another one.
      for number in 0..<1000 as Range<UInt64> {
        tickets.append(queue.add([.content(1, (1000 - number)..<(2000 + number))] + names))
      }
      #expect(queue.concerns([.content(1)]) && queue.concerns([names[0]]) && !queue.concerns([.content(2)]))
      #expect(queue.count == 4)
      kernel.release()
      for ticket in tickets { queue.wait(for: ticket, atMost: 600) }
      // Once more of what it was about to take: that may have been before the change.
      #expect(kernel.told == [.content(1), .content(1, 1..<2999)] + names)
      #expect(!queue.concerns([.content(1)] + names))
      queue.end()
    }

    @Test func `while a folder is looked for at its place nobody waits for others`() throws {
      let kernel = Kernel()
      let queue = try ChangeQueue(kernel.tell)
      kernel.hold()
      let places = [KernelChange.place(of: 5), .name([1], in: 7)]
      let ticket = queue.add(places)
      kernel.waitUntilAsked()
      // On its way any folder is passed.
      #expect(queue.concerns([.attributes(100)]))
      queue.add(places)
      queue.add(places + [.place(of: 6)])
      kernel.release()
      queue.wait(for: ticket, atMost: 600)
      queue.wait(for: queue.add([.content(9)]), atMost: 600)
      #expect(kernel.told == places + places + [.place(of: 6), .content(9)])
      #expect(!queue.concerns([.attributes(100)]))
      queue.end()
    }

    @Test(arguments: [1, 2, 3, 10])
    func `a kernel that is about to know a file is told of it once more, and not for ever`(
      _ refusals: Int
    ) throws {
      let kernel = Kernel()
      kernel.refuse(refusals)
      let queue = try ChangeQueue(retryTime: 0, kernel.tell)
      // Nobody waits for that.
      queue.wait(for: queue.add([.content(1)]), atMost: 600)
      let count = min(refusals, 3) + 1
      kernel.waitUntilTold(count)
      queue.wait(for: queue.add([.content(2)]), atMost: 600)
      queue.wait(for: queue.add([.content(3)]), atMost: 600)
      #expect(kernel.told.filter { $0 == .content(1) }.count == count)
      queue.end()
    }

    /// Counts what was changed and what was told of it, as a kernel that reads anew when it is told.
    private final class Counters: Sendable {
      let changed = Mutex([Int](repeating: 0, count: 4))
      let told = Mutex([Int](repeating: 0, count: 4))
    }

    @Test func `who has waited finds the change told, however many make the same`() throws {
      let counters = Counters()
      let queue = try ChangeQueue { change in
        let node = Int(change.node)
        let count = counters.changed.withLock { $0[node] }
        counters.told.withLock { $0[node] = max($0[node], count) }
        return true
      }
      DispatchQueue.concurrentPerform(iterations: 4) { worker in
        for round in 0..<500 {
          let node = (worker * round + round) % 4
          let count = counters.changed.withLock { changed in
            changed[node] += 1
            return changed[node]
          }
          queue.wait(for: queue.add([.content(UInt64(node))]), atMost: 600)
          #expect(counters.told.withLock { $0[node] } >= count)
        }
      }
      queue.end()
    }
  }
#endif
