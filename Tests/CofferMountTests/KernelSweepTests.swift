#if os(Linux)
  import CofferFiles
  @testable import CofferMount
  import Foundation
  import Synchronization
  import Testing

  /// A kernel that is to forget all, while programs hold up some of it.
  @Suite struct KernelSweepTests {
    private static let root = InodeNumber(value: 2)

    private final class Kernel: @unchecked Sendable {
      private let condition = NSCondition()
      private let held: Set<InodeNumber>
      private var isLetGo = false
      private var told: [InodeNumber: Int] = [:]
      private var stuckCount = 0

      init(holding held: Set<InodeNumber>) { self.held = held }

      func tell(_ number: InodeNumber) -> Bool {
        condition.withLock {
          if held.contains(number) {
            stuckCount += 1
            condition.broadcast()
            while !isLetGo { condition.wait() }
            stuckCount -= 1
          }
          told[number, default: 0] += 1
          condition.broadcast()
          return true
        }
      }

      var forgotten: [InodeNumber: Int] { condition.withLock { told } }

      func letGo(_ count: Int) {
        condition.withLock {
          isLetGo = true
          condition.broadcast()
          while told.count < count { condition.wait() }
        }
      }
    }

    private static func nodes(_ count: UInt64) -> KernelNodes {
      let nodes = KernelNodes()
      nodes.willTell((10..<10 + count).map { InodeNumber(value: $0) })
      return nodes
    }

    @Test func `everything is forgotten once`() {
      let kernel = Kernel(holding: [])
      KernelSweep.run(Self.nodes(500), root: Self.root) { kernel.tell($0) }
      #expect(kernel.forgotten.count == 501 && kernel.forgotten.values.allSatisfy { $0 == 1 })
    }

    @Test(arguments: [[2], [10], [2, 11, 300]] as [Set<UInt64>])
    func `what is held up keeps nothing else`(_ numbers: Set<UInt64>) {
      let held = Set(numbers.map { InodeNumber(value: $0) })
      let kernel = Kernel(holding: held)
      KernelSweep.run(Self.nodes(500), root: Self.root, patience: 0.02) { kernel.tell($0) }
      #expect(kernel.forgotten.count == 501 - held.count && held.isDisjoint(with: kernel.forgotten.keys))
      kernel.letGo(501)
      #expect(kernel.forgotten.values.allSatisfy { $0 == 1 })
    }

    /// Whoever holds up more than there are threads for keeps nobody from going on.
    @Test func `it ends though nothing is let go`() {
      let nodes = Self.nodes(100)
      let kernel = Kernel(holding: Set(nodes.known))
      KernelSweep.run(nodes, root: Self.root, patience: 0.02) { kernel.tell($0) }
      #expect(Array(kernel.forgotten.keys) == [Self.root])
      kernel.letGo(101)
    }

    @Test func `a file that the kernel is just being told of is told of once more`() {
      let isLate = Atomic(true)
      let nodes = Self.nodes(3)
      let kernel = Kernel(holding: [])
      KernelSweep.run(nodes, root: Self.root) { number in
        if number.value == 11, isLate.exchange(false, ordering: .relaxed) { return false }
        return kernel.tell(number)
      }
      #expect(kernel.forgotten.count == 4)
    }
  }
#endif
