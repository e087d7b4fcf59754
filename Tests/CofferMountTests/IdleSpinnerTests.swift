import Glibc
import Synchronization
import Testing

@testable import CofferMount

@Suite(.timeLimit(.minutes(5))) struct IdleSpinnerTests {
  /// A clock that stands still, and counts who looks.
  private final class Clock: Sendable {
    let now = Atomic<UInt64>(1_000)
    let looks = Atomic(0)
    /// Of the thread that looked last.
    let schedulingClass = Atomic<CInt>(-1)

    func read() -> UInt64 {
      schedulingClass.store(sched_getscheduler(0), ordering: .relaxed)
      looks.add(1, ordering: .relaxed)
      return now.load(ordering: .sequentiallyConsistent)
    }

    func waitForLooks(_ count: Int) {
      let wanted = looks.load(ordering: .relaxed) + count
      while looks.load(ordering: .relaxed) < wanted { sched_yield() }
    }
  }

  /// What it is told of other threads.
  private final class Crowd: Sendable {
    let isThere = Atomic(false)
    let looks = Atomic(0)

    func look() -> Bool {
      looks.add(1, ordering: .relaxed)
      return isThere.load(ordering: .relaxed)
    }
  }

  private func waitForSleep(of spinner: IdleSpinner) { while !spinner.isSleeping { sched_yield() } }

  @Test
  func `it turns from a request or an answer on for its time, behind everybody else, and sleeps before and after`()
    throws
  {
    let clock = Clock()
    let spinner = IdleSpinner { clock.read() }
    try spinner.start()
    for _ in 0..<20 {
      waitForSleep(of: spinner)
      let start = clock.now.load(ordering: .relaxed)
      spinner.didTake(at: start)
      clock.waitForLooks(50)
      #expect(clock.schedulingClass.load(ordering: .relaxed) == IdleSpinner.idleClass)
      clock.now.store(start + IdleSpinner.time - 1, ordering: .sequentiallyConsistent)
      clock.waitForLooks(50)
      #expect(!spinner.isSleeping)
      // An answer within that time is the beginning of another.
      spinner.didAnswer(at: start + IdleSpinner.time - 1)
      clock.now.store(start + 2 * IdleSpinner.time - 2, ordering: .sequentiallyConsistent)
      clock.waitForLooks(50)
      #expect(!spinner.isSleeping)
      clock.now.store(start + 2 * IdleSpinner.time - 1, ordering: .sequentiallyConsistent)
    }
    waitForSleep(of: spinner)
    // Nobody is woken for nothing: once it sleeps it looks no more.
    let looks = clock.looks.load(ordering: .relaxed)
    for _ in 0..<1_000 { sched_yield() }
    #expect(clock.looks.load(ordering: .relaxed) <= looks + 1)
    spinner.stop()
  }

  @Test func `it turns no more for requests that come apart, and again for the first that does not`() throws {
    let clock = Clock()
    let spinner = IdleSpinner { clock.read() }
    try spinner.start()
    var moment: UInt64 = 1 << 40
    /// Whether it turns for a request that comes so long after the answer before, and is answered after as long.
    func turns(after gap: UInt64, _ time: UInt64 = 10_000) -> Bool {
      waitForSleep(of: spinner)
      moment += gap
      clock.now.store(moment, ordering: .sequentiallyConsistent)
      spinner.didTake(at: moment)
      let turns = !spinner.isSleeping
      if turns { clock.waitForLooks(50) }
      moment += time
      clock.now.store(moment, ordering: .sequentiallyConsistent)
      spinner.didAnswer(at: moment)
      if turns { clock.waitForLooks(50) }
      #expect(turns == !spinner.isSleeping)
      // Nobody asks for so long.
      clock.now.store(moment + IdleSpinner.time, ordering: .sequentiallyConsistent)
      return turns
    }
    let apart = IdleSpinner.time + 1
    for _ in 0..<3 {
      for _ in 1..<IdleSpinner.apartLimit / IdleSpinner.apartWeight { #expect(turns(after: apart)) }
      // However long an answer takes.
      for _ in 0..<10 { #expect(!turns(after: apart, 3 * IdleSpinner.time)) }
      for _ in IdleSpinner.apartLimit..<IdleSpinner.apartMost { #expect(!turns(after: IdleSpinner.time)) }
      for _ in 0..<10 { #expect(turns(after: IdleSpinner.time)) }
    }
    // Nor for some at a time that come apart from others.
    for round in 0..<20 {
      for position in 0..<IdleSpinner.apartWeight {
        let turns = turns(after: position == 0 ? apart : 10_000)
        if round > IdleSpinner.apartMost { #expect(!turns) }
      }
    }
    spinner.stop()
  }

  @Test
  func `it leaves the processors to others that want them, for longer and longer, and comes back when they do not`()
    throws
  {
    let clock = Clock()
    let crowd = Crowd()
    let spinner = IdleSpinner {
      clock.read()
    } isCrowded: {
      crowd.look()
    }
    try spinner.start()
    var moment: UInt64 = 1 << 40
    /// Takes requests until it turns no more, or has looked so often; whether it looked as often without an end.
    func goesOn(for lookCount: Int) -> Bool {
      for _ in 0..<lookCount {
        moment += IdleSpinner.lookTime
        clock.now.store(moment, ordering: .sequentiallyConsistent)
        let looks = crowd.looks.load(ordering: .relaxed)
        spinner.didAnswer(at: moment)
        spinner.didTake(at: moment)
        while crowd.looks.load(ordering: .relaxed) == looks, !spinner.isPaused(at: moment) { sched_yield() }
        if crowd.looks.load(ordering: .relaxed) == looks { return false }
      }
      return true
    }
    #expect(goesOn(for: 100))
    crowd.isThere.store(true, ordering: .relaxed)
    var pause = IdleSpinner.pauseTime.first
    for _ in 0..<8 {
      #expect(goesOn(for: IdleSpinner.crowdLimit))
      waitForSleep(of: spinner)
      // Neither now nor at the end of the pause.
      #expect(!goesOn(for: 1))
      moment += pause - 3 * IdleSpinner.lookTime
      #expect(!goesOn(for: 1))
      pause = min(2 * pause, IdleSpinner.pauseTime.most)
    }
    crowd.isThere.store(false, ordering: .relaxed)
    #expect(goesOn(for: 1))
    // Somebody who comes and goes does not count.
    for _ in 0..<10 {
      crowd.isThere.store(true, ordering: .relaxed)
      #expect(goesOn(for: IdleSpinner.crowdLimit - 1))
      crowd.isThere.store(false, ordering: .relaxed)
      #expect(goesOn(for: 1))
    }
    crowd.isThere.store(true, ordering: .relaxed)
    #expect(goesOn(for: IdleSpinner.crowdLimit))
    waitForSleep(of: spinner)
    // As short as the first time again.
    moment += IdleSpinner.pauseTime.first
    #expect(goesOn(for: 1))
    spinner.stop()
  }

  @Test func `whoever is runnable is counted, with the thread that asks`() throws {
    #expect(RunnableThreads.count(in: Array("0.20 0.18 0.12 3/80 11206\n".utf8)) == 3)
    for text in ["", "0.20", "0.20 0.18 0.12 ", "0.20 0.18 0.12 x/80 1"] {
      #expect(RunnableThreads.count(in: Array(text.utf8)) == nil)
    }
    let threads = try #require(RunnableThreads())
    #expect(try #require(threads.count) >= 1)
  }

  @Test(arguments: [false, true])
  func `it ends, whether it turns or sleeps, and nothing of it stays`(turns: Bool) throws {
    weak var left: IdleSpinner?
    do {
      let clock = Clock()
      let spinner = IdleSpinner { clock.read() }
      left = spinner
      try spinner.start()
      waitForSleep(of: spinner)
      if turns {
        spinner.didTake(at: 1_000)
        clock.waitForLooks(10)
      }
      spinner.stop()
    }
    while left != nil { sched_yield() }
  }

  @Test func `many threads that answer lose no request`() async throws {
    let clock = Clock()
    let spinner = IdleSpinner { clock.read() }
    try spinner.start()
    await withTaskGroup(of: Void.self) { group in
      for _ in 0..<4 {
        group.addTask {
          for _ in 0..<2_000 {
            let moment = clock.now.add(IdleSpinner.time / 4, ordering: .relaxed).newValue
            spinner.didTake(at: moment)
            spinner.didAnswer(at: moment)
          }
        }
      }
    }
    // The last one has it turning, or will.
    let last = clock.now.load(ordering: .relaxed)
    spinner.didTake(at: last)
    clock.waitForLooks(50)
    clock.now.store(last + IdleSpinner.time, ordering: .sequentiallyConsistent)
    waitForSleep(of: spinner)
    spinner.stop()
  }

  @Test func `it is of use where processors halt at once, and the kernel cannot be asked`() {
    let halting = IdleDriver(driver: "haltpoll\n", pollTime: "0\n")
    #expect(halting == .haltsAtOnce)
    #expect(IdleDriver(driver: "haltpoll\n", pollTime: "200000\n") == .other)
    for driver in ["none\n", "intel_idle\n", nil] { #expect(IdleDriver(driver: driver, pollTime: nil) == .other) }
    func isOfUse(_ driver: IdleDriver, mayAskKernel: Bool, _ count: Int, own: Int? = nil) -> Bool {
      IdleSpinner.isOfUse(driver, mayAskKernel: mayAskKernel, processorCount: count, ownProcessorCount: own ?? count)
    }
    #expect(isOfUse(halting, mayAskKernel: false, 2))
    #expect(!isOfUse(halting, mayAskKernel: true, 2))
    for count in [1, 3, 64] { #expect(!isOfUse(halting, mayAskKernel: false, count)) }
    #expect(!isOfUse(halting, mayAskKernel: false, 2, own: 1))
    for mayAsk in [false, true] { #expect(!isOfUse(.other, mayAskKernel: mayAsk, 2)) }
  }
}
