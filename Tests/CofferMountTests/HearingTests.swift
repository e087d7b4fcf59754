import Testing

@testable import CofferMount

/// When all has been heard that the kernel had said: not before who took it has answered it, nor before what that answer brings.
struct HearingTests {
  private let turns = Turns()
  private let kernel = Kernel()

  private final class Kernel {
    /// Requests that nobody has taken.
    var count = 0
    var takenCount = 0
  }

  private func hearing() -> () -> Bool {
    var begun = Hearing(turns) { [kernel] in
      kernel.count == 0
    } takenCount: { [kernel] in
      kernel.takenCount
    }
    return { begun.isOver() }
  }

  @Test func `where nothing is said nothing is waited for`() {
    _ = turns.add()
    let isOver = hearing()
    #expect(isOver())
  }

  @Test func `what nobody has taken has not been heard, nor what is being answered`() {
    let turn = turns.add()
    kernel.count = 1
    let isOver = hearing()
    #expect(!isOver())
    turn.begin()
    kernel.count = 0
    #expect(!isOver())
    #expect(!isOver())
    turn.end()
    #expect(isOver())
  }

  /// A thread that has taken a request may lack the processor before it says so.
  @Test func `a thread that asks may have got something`() {
    let turn = turns.add()
    turn.begin()
    let isOver = hearing()
    #expect(!isOver())
    turn.end()
    #expect(isOver())
  }

  @Test func `what an answer brings is heard as well`() {
    let (first, second) = (turns.add(), turns.add())
    first.begin()
    let isOver = hearing()
    #expect(!isOver())
    kernel.count = 1
    first.end()
    #expect(!isOver())
    second.begin()
    kernel.count = 0
    #expect(!isOver())
    kernel.count = 1
    second.end()
    // What is read ahead, the closing of that file, and that it is given back.
    #expect(!isOver())
    kernel.count = 0
    #expect(isOver())
    #expect(isOver())
  }

  @Test func `what others are at that began later is not waited for for ever`() {
    let turn = turns.add()
    turn.begin()
    let isOver = hearing()
    for _ in 0..<3 {
      #expect(!isOver())
      turn.end()
      turn.begin()
    }
    #expect(isOver())
  }

  @Test func `programs that never leave the kernel without a request keep nobody waiting`() {
    let turn = turns.add()
    kernel.count = 1
    let isOver = hearing()
    turn.begin()
    for _ in 0..<3 {
      #expect(!isOver())
      // What was there at first is far behind.
      kernel.takenCount += 5000
      #expect(!isOver())
      turn.end()
      turn.begin()
    }
    #expect(isOver())
  }

  @Test func `who waits is not waited for`() {
    let (waiting, other) = (turns.add(), turns.add())
    waiting.begin()
    other.begin()
    waiting.pausing {
      // Once more within.
      waiting.pausing {}
      let isOver = hearing()
      #expect(!isOver())
      other.end()
      #expect(isOver())
    }
    let isOver = hearing()
    #expect(!isOver())
    waiting.end()
    #expect(isOver())
  }
}
