internal import CFuse3
internal import CofferSystem
internal import Glibc
internal import Synchronization

/// Keeps the threads that answer off the processor of the program that asks, where there are two and both are awake.
///
/// The kernel likes to wake who answers where the program runs, which is about to sleep and leaves it that processor. But a program that
/// computes between two requests does not sleep long, and for what nobody waits for (a file that was closed) it does not sleep at all:
/// it is held up while the other processor idles. So the program's processor is looked up from time to time, and who answers keeps to
/// the other one; not where others want that too, most of the time.
///
/// Beside processors that halt it would only add what waking them takes, and among more than two the kernel finds an idle one itself.
final class AnsweringProcessor: Sendable {
  private let processors: [Int]
  /// What to keep to, with the number of times that it was given up before; ``anywhere`` for nothing.
  let choice = Atomic(AnsweringProcessor.anywhere)
  private let endCount = Atomic(0)
  private static let anywhere = -1
  /// It is time to look where the program runs.
  private let isLookWanted = Atomic(false)
  /// Threads that keep to a processor, by their numbers. None begins to while nothing is chosen.
  private let kept = Mutex<Set<pid_t>>([])

  /// - Parameter processors: the numbers of both.
  init(processors: [Int]) {
    precondition(processors.count == 2, "not two processors")
    self.processors = processors
  }

  /// For the process; nil where it is of no use.
  static func present() -> AnsweringProcessor? {
    guard IdleDriver.present == .haltsAtOnce, AwakeProcessors.mayBeKept, MachineProcessors.count == 2,
      let own = MachineProcessors.ofThread, own.count == 2, isOwnProcessListed
    else { return nil }
    return AnsweringProcessor(processors: own)
  }

  /// The kernel's files tell of the processes that this one and its mounts know by their numbers, and not of another namespace's.
  private static var isOwnProcessListed: Bool {
    withUnsafeTemporaryAllocation(of: CChar.self, capacity: 32) { name in
      let length = readlink("/proc/self", name.baseAddress!, name.count)
      return length > 0 && name[..<length].elementsEqual("\(getpid())".utf8.map(CChar.init))
    }
  }

  /// Has who takes the next request look where the program runs.
  func askForLook() { isLookWanted.store(true, ordering: .relaxed) }

  /// Looks where a program runs, if it is time.
  ///
  /// Only before the answer for which the program's thread waits: it cannot end meanwhile. Who reads the kernel's file holds on to the
  /// memory of the program, and who is the last to do so clears it away, which may wait for any file system that was mapped there.
  ///
  /// - Parameter thread: the one that waits.
  func didTake(from thread: UInt32) {
    guard isLookWanted.load(ordering: .relaxed) else { return }
    let end = endCount.load(ordering: .relaxed)
    isLookWanted.store(false, ordering: .relaxed)
    guard let processor = Self.processor(of: thread), let place = processors.firstIndex(of: processor) else { return }
    kept.withLock { _ in
      // It may be given up by now, and who did that asks for no other look.
      if end == endCount.load(ordering: .relaxed) { choice.store(2 * end + (1 - place), ordering: .relaxed) }
    }
  }

  /// Lets all threads run where they may, whatever they are at.
  func giveUp() {
    isLookWanted.store(false, ordering: .relaxed)
    kept.withLock { threads in
      endCount.add(1, ordering: .relaxed)
      choice.store(Self.anywhere, ordering: .relaxed)
      for thread in threads { MachineProcessors.free(thread) }
      threads = []
    }
  }

  /// Where a thread runs, or ran last; nil where the kernel does not say.
  private static func processor(of thread: UInt32) -> Int? {
    let file = open("/proc/\(thread)/task/\(thread)/stat", O_RDONLY | O_CLOEXEC)
    guard file >= 0 else { return nil }
    defer { close(file) }
    return withUnsafeTemporaryAllocation(byteCount: 1024, alignment: 1) { bytes in
      let length = read(file, bytes.baseAddress, bytes.count)
      return length > 0 ? processor(in: bytes[..<length]) : nil
    }
  }

  /// - Parameter text: as proc_pid_stat(5) has it, with the program's name in parentheses, which may be in it too.
  static func processor(in text: some BidirectionalCollection<UInt8>) -> Int? {
    guard let end = text.lastIndex(of: UInt8(ascii: ")")) else { return nil }
    // The name is the second field, the processor the thirty-ninth.
    let fields = text[end...].split(separator: UInt8(ascii: " "), maxSplits: 38)
    return fields.count > 37 ? Int(String(decoding: fields[37], as: UTF8.self)) : nil
  }

  /// A thread that keeps to the processor which was chosen. What it starts would keep to that too, but for `NewThread`'s.
  ///
  /// Used on that thread alone, and left before it ends.
  struct KeptThread {
    private let thread = coffer_thread()
    private var followed = AnsweringProcessor.anywhere

    /// Goes where those that answer are to run.
    mutating func follow(_ chosen: AnsweringProcessor) {
      let choice = chosen.choice.load(ordering: .relaxed)
      guard choice != followed else { return }
      followed = choice
      if choice == AnsweringProcessor.anywhere { chosen.free(thread) } else { chosen.keep(thread, to: choice) }
    }

    /// Runs where it may again.
    mutating func leave(_ chosen: AnsweringProcessor) {
      guard followed != AnsweringProcessor.anywhere else { return }
      followed = AnsweringProcessor.anywhere
      chosen.free(thread)
    }
  }

  /// - Parameter thread: the calling one.
  func keep(_ thread: pid_t, to wanted: Int) {
    let processor = processors[wanted % 2]
    kept.withLock { threads in
      // Somebody may have told the process where to run; and what was chosen may be given up by now.
      guard choice.load(ordering: .relaxed) == wanted, MachineProcessors.usual?.contains(processor) == true else {
        return
      }
      threads.insert(thread)
      MachineProcessors.keepThread(to: processor)
    }
  }

  /// - Parameter thread: the calling one.
  private func free(_ thread: pid_t) {
    kept.withLock { threads in if threads.remove(thread) != nil { MachineProcessors.free(thread) } }
  }
}

/// Whether threads want both processors, judged by a row of looks.
///
/// A program and who answers it run by turns, and both at once in a quarter of the looks or so; beside somebody who computes, two threads
/// want to run in nearly all.
struct Crowd {
  private(set) var isThere = true
  private var score = 4

  /// From here on there is one, until no score is left.
  private static let limit = 8
  private static let most = 16

  /// - Parameter count: threads that run, or would.
  mutating func look(at count: Int) {
    score = count > 1 ? min(score + 1, Self.most) : max(score - 1, 0)
    if score >= Self.limit { isThere = true }
    if score == 0 { isThere = false }
  }
}
