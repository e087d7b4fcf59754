import CofferTestSupport
import Foundation
import Glibc
import Synchronization
import Testing

@testable import CofferMount

/// What one thread leaves for another.
private final class Result<Value: Sendable>: @unchecked Sendable { var value: Value? }

@Suite(.timeLimit(.minutes(5))) struct AnsweringProcessorTests {
  /// A thread that sleeps on a processor until it is told to end.
  private final class Program: Sendable {
    private let number = Atomic<UInt32>(0)
    private let begun = DispatchSemaphore(value: 0)
    private let mayEnd = DispatchSemaphore(value: 0)

    init(on processor: Int) {
      Thread.detachNewThread { [self] in
        MachineProcessors.keepThread(to: processor)
        number.store(AnsweringProcessorTests.ownThread, ordering: .relaxed)
        begun.signal()
        mayEnd.wait()
      }
      begun.wait()
    }

    var thread: UInt32 { number.load(ordering: .relaxed) }

    /// Returns when the thread is gone.
    func end() {
      mayEnd.signal()
      while FileManager.default.fileExists(atPath: "/proc/self/task/\(thread)") { sched_yield() }
    }
  }

  /// The number of the calling thread.
  private static var ownThread: UInt32 {
    let name = try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/thread-self")
    return name?.split(separator: "/").last.flatMap { UInt32($0) } ?? 0
  }

  /// What a thread of its own returns, which may keep to processors.
  private func onThread<Value: Sendable>(_ body: @escaping @Sendable () -> Value) throws -> Value {
    let result = Result<Value>()
    let hasEnded = DispatchSemaphore(value: 0)
    Thread.detachNewThread {
      result.value = body()
      hasEnded.signal()
    }
    hasEnded.wait()
    return try #require(result.value)
  }

  /// The first two that this process may use.
  private static let processors = MachineProcessors.ofThread.map { Array($0.prefix(2)) } ?? []

  @Test(.enabled(if: processors.count == 2, "there is one processor"))
  func `who answers keeps to the processor that the program does not run on, until that is given up`() throws {
    let processors = Self.processors
    let (first, second) = (Program(on: processors[0]), Program(on: processors[1]))
    let places = try onThread {
      let chosen = AnsweringProcessor(processors: processors)
      var (thread, places) = (AnsweringProcessor.KeptThread(), [[Int]?]())
      func note() {
        thread.follow(chosen)
        places.append(MachineProcessors.ofThread)
      }
      // Nobody is to look.
      chosen.didTake(from: first.thread)
      note()
      chosen.askForLook()
      chosen.didTake(from: first.thread)
      note()
      // One look for each time that it is asked for.
      chosen.didTake(from: second.thread)
      note()
      chosen.askForLook()
      chosen.didTake(from: second.thread)
      note()
      chosen.giveUp()
      // Before the thread itself does anything.
      places.append(MachineProcessors.ofThread)
      note()
      // The same place anew, and a thread that has ended.
      chosen.askForLook()
      chosen.didTake(from: second.thread)
      note()
      second.end()
      chosen.askForLook()
      chosen.didTake(from: second.thread)
      note()
      thread.leave(chosen)
      places.append(MachineProcessors.ofThread)
      return places
    }
    first.end()
    let usual = try #require(MachineProcessors.usual)
    #expect(
      places == [
        usual, [processors[1]], [processors[1]], [processors[0]], usual, usual, [processors[0]], [processors[0]], usual,
      ])
  }

  @Test(.enabled(if: processors.count == 2, "there is one processor"))
  func `who comes to keep to a processor when that was just given up does not`() throws {
    let processors = Self.processors
    let program = Program(on: processors[0])
    let places = try onThread {
      let chosen = AnsweringProcessor(processors: processors)
      var places: [[Int]?] = []
      for _ in 0..<2 {
        chosen.askForLook()
        chosen.didTake(from: program.thread)
        let choice = chosen.choice.load(ordering: .relaxed)
        chosen.giveUp()
        chosen.keep(pid_t(Self.ownThread), to: choice)
        places.append(MachineProcessors.ofThread)
        // Nor where the same place was chosen again: that is another choice.
        chosen.askForLook()
        chosen.didTake(from: program.thread)
        chosen.keep(pid_t(Self.ownThread), to: choice)
        places.append(MachineProcessors.ofThread)
      }
      return places
    }
    program.end()
    #expect(places == Array(repeating: MachineProcessors.usual, count: 4))
  }

  @Test(.enabled(if: processors.count == 2, "there is one processor"))
  func `what a thread starts that keeps to a processor may run on all`() throws {
    let processors = Self.processors
    let places = try onThread {
      MachineProcessors.keepThread(to: processors[1])
      return [MachineProcessors.ofThread, BriefAnswer.within(300) { MachineProcessors.ofThread } ?? nil]
    }
    #expect(places == [[processors[1]], MachineProcessors.ofThread])
  }

  @Test func `a program's processor is found whatever its name is`() {
    let numbers = (4...52).map { $0 == 39 ? "17" : "\(1000 + $0)" }.joined(separator: " ")
    for name in ["cat", "a b", ") R 1 2 3", "((", ")"] {
      #expect(AnsweringProcessor.processor(in: "12 (\(name)) S \(numbers)\n".utf8) == 17)
    }
    for text in [
      "", "12", "12 (cat", "12 (cat)", "12 (cat) S 1 2 3", "12 (cat) S " + String(repeating: "x ", count: 40),
    ] {
      #expect(AnsweringProcessor.processor(in: text.utf8) == nil)
    }
  }

  @Test(arguments: 0..<50)
  func `a crowd is where nearly all looks find several, and hardly ever where some do`(seed: UInt64) {
    var generator = SeededGenerator(seed: seed)
    var crowd = Crowd()
    // Until there is reason to believe otherwise.
    #expect(crowd.isThere)
    var wrongCounts = [true: 0, false: 0]
    let (periodCount, lookCount) = (20, 200)
    for period in 0..<periodCount {
      let isCrowd = period.isMultiple(of: 2)
      for look in 0..<lookCount {
        let isSeveral = generator.next() % 100 < (isCrowd ? 95 : 25)
        crowd.look(at: isSeveral ? Int(2 + generator.next() % 3) : Int(generator.next() % 2))
        if look >= lookCount / 2, crowd.isThere != isCrowd { wrongCounts[isCrowd]! += 1 }
      }
    }
    #expect(wrongCounts[true] == 0)
    #expect(wrongCounts[false]! <= periodCount * lookCount / 4 / 10, "of \(periodCount * lookCount / 4)")
  }
}
