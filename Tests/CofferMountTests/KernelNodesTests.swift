#if os(Linux)
  import CofferFiles
  @testable import CofferMount
  import CofferTestSupport
  import Testing

  /// What the kernel knows, beside a kernel that gives back late what it was told.
  @Suite struct KernelNodesTests {
    /// A file in the kernel: how often it was told of it since it last let it go, and whether it was opened since.
    private struct Node {
      var tellings: UInt64 = 0
      var isOpened = false
      /// What it gave back when it let the file go, on the way.
      var onTheWay: [UInt64] = []

      var total: UInt64 { tellings + onTheWay.reduce(0, +) }
    }

    @Test(arguments: 0..<50) func `a file that was opened is kept as long as the kernel knows it, and no longer`(
      _ seed: UInt64
    ) {
      var generator = SeededGenerator(seed: seed)
      let nodes = KernelNodes()
      var kernel = [Node](repeating: Node(), count: 5)
      func number(_ position: Int) -> InodeNumber { InodeNumber(value: UInt64(position) + 10) }
      func giveBack(_ position: Int, _ taken: Int) {
        let count = kernel[position].onTheWay.remove(at: taken)
        #expect(nodes.didGiveBack(number(position), count) {} == (kernel[position].total == 0))
      }
      for _ in 0..<400 {
        let position = Int.random(in: kernel.indices, using: &generator)
        switch Int.random(in: 0..<6, using: &generator) {
        case 0, 1:
          nodes.willTell(number(position))
          kernel[position].tellings += 1
        case 2:
          // A page of a folder, with two names of one file.
          nodes.willTell(kernel.indices.map(number) + [number(position)])
          for position in Array(kernel.indices) + [position] { kernel[position].tellings += 1 }
        case 3 where kernel[position].tellings > 0:
          nodes.didOpen(number(position))
          kernel[position].isOpened = true
        case 4 where kernel[position].tellings > 0:
          kernel[position].onTheWay.append(kernel[position].tellings)
          kernel[position].tellings = 0
          kernel[position].isOpened = false
        case 5:
          let waiting = kernel[position].onTheWay.indices
          if let taken = waiting.randomElement(using: &generator) { giveBack(position, taken) }
        default: break
        }
        for (position, node) in kernel.enumerated() where node.isOpened {
          #expect(nodes.opened.contains(number(position)))
        }
      }
      for (position, node) in kernel.enumerated() {
        if node.tellings > 0 { kernel[position].onTheWay.append(node.tellings) }
        kernel[position].tellings = 0
        while !kernel[position].onTheWay.isEmpty { giveBack(position, 0) }
      }
      #expect(nodes.opened.isEmpty)
    }

    @Test func `what comes back behind a new answer leaves the file known`() {
      let (nodes, file) = (KernelNodes(), InodeNumber(value: 7))
      nodes.willTell(file)
      nodes.didOpen(file)
      // The kernel lets it go, looks it up again and opens it, before the first is read here.
      nodes.willTell(file)
      nodes.didOpen(file)
      let isForgotten = nodes.didGiveBack(file, 1) {}
      #expect(!isForgotten && nodes.opened == [file])
      #expect(nodes.didGiveBack(file, 1) {})
      #expect(nodes.opened.isEmpty)
    }

    @Test func `all are told of, also what the kernel is only just learning of`() {
      let nodes = KernelNodes()
      let numbers = (1...6).map { InodeNumber(value: $0) }
      nodes.willTell(numbers[..<4])
      var kernel = Set(numbers[..<2])
      var told: [InodeNumber] = []
      var pauses = 0
      nodes.tellAll { number in
        if kernel.contains(number) { told.append(number) }
        return kernel.contains(number)
      } pause: {
        pauses += 1
        switch pauses {
        // An answer has come, and another one was on its way.
        case 1:
          kernel.insert(numbers[2])
          nodes.willTell(numbers[4])
        case 2: kernel.insert(numbers[4])
        // What it never got.
        default: _ = nodes.didGiveBack(numbers[3], 1) {}
        }
      }
      #expect(pauses == 3 && told.count == 4 && Set(told) == [numbers[0], numbers[1], numbers[2], numbers[4]])

      // Of what it never comes to know it is not told for ever, and nothing waits where it knows all.
      pauses = 0
      nodes.willTell(numbers[5])
      nodes.tellAll {
        $0 != numbers[5]
      } pause: {
        pauses += 1
      }
      #expect(pauses == 3)
      pauses = 0
      nodes.tellAll { _ in
        true
      } pause: {
        pauses += 1
      }
      #expect(pauses == 0)
    }

    @Test func `a file of which more comes back than was told stays among those that a lock drops`() {
      let (nodes, file) = (KernelNodes(), InodeNumber(value: 7))
      nodes.willTell(file)
      nodes.didOpen(file)
      // It is known no more, as far as was counted.
      for count in [UInt64(2), 1] { #expect(nodes.didGiveBack(file, count) {}) }
      #expect(nodes.opened == [file])
    }
  }
#endif
