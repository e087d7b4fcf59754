#if os(Linux)
  @testable import CofferMount
  import Foundation
  import Glibc
  import Synchronization
  import Testing

  /// Files that wait for another thread to close them.
  @Suite struct ClosingFilesTests {
    /// A file that says when it is closed, and on which thread, and may have to wait.
    private final class File: ClosingFile {
      let hasUnjoinedChanges: Bool
      let gate: Gate?
      private let closings = Mutex<[pthread_t]>([])

      init(hasUnjoinedChanges: Bool = true, gate: Gate? = nil) {
        self.hasUnjoinedChanges = hasUnjoinedChanges
        self.gate = gate
      }

      var closingThreads: [pthread_t] { closings.withLock { $0 } }
      var isClosed: Bool { closingThreads.count == 1 }

      func close() throws {
        gate?.pass()
        closings.withLock { $0.append(pthread_self()) }
        // Whoever closes files goes on behind one that cannot be closed.
        throw CancellationError()
      }
    }

    /// Lets nobody pass until it is opened, and tells when somebody stands before it.
    private final class Gate: @unchecked Sendable {
      private let condition = NSCondition()
      private var isOpen = false
      private var hasCome = false

      func pass() {
        condition.withLock {
          hasCome = true
          condition.broadcast()
          while !isOpen { condition.wait() }
        }
      }

      func waitForSomebody() { condition.withLock { while !hasCome { condition.wait() } } }

      func open() {
        condition.withLock {
          isOpen = true
          condition.broadcast()
        }
      }
    }

    @Test func `it is told when what was there is closed, whatever comes behind it`() throws {
      let closing = try ClosingFiles<File>()
      defer { closing.end() }
      let none = closing.closing()
      #expect(none())
      let (first, second) = (Gate(), Gate())
      closing.add(File(gate: first))
      let areClosed = closing.closing()
      first.waitForSomebody()
      closing.add(File(gate: second))
      #expect(!areClosed())
      let areAllClosed = closing.closing()
      first.open()
      second.waitForSomebody()
      #expect(areClosed() && closing.isBusy && !areAllClosed())
      second.open()
      closing.finish()
      #expect(areAllClosed())
    }

    @Test func `a file without changes is closed at once`() throws {
      let closing = try ClosingFiles<File>()
      defer { closing.end() }
      let file = File(hasUnjoinedChanges: false)
      closing.add(file)
      #expect(file.closingThreads == [pthread_self()])
    }

    @Test func `a few files wait until no more requests come`() throws {
      let closing = try ClosingFiles<File>()
      defer { closing.end() }
      let gate = Gate()
      let files = (0..<15).map { _ in File(gate: gate) }
      for file in files { closing.add(file) }
      #expect(!files.contains { $0.isClosed })
      closing.startClosing()
      gate.waitForSomebody()
      gate.open()
      closing.finish()
      #expect(files.allSatisfy { $0.isClosed })
    }

    @Test func `a portion is closed by another thread, without anybody's asking`() throws {
      let closing = try ClosingFiles<File>()
      defer { closing.end() }
      let gate = Gate()
      let files = (0..<16).map { _ in File(gate: gate) }
      for file in files { closing.add(file) }
      gate.waitForSomebody()
      gate.open()
      closing.finish()
      #expect(files.allSatisfy { $0.isClosed && $0.closingThreads != [pthread_self()] })
    }

    @Test func `who is faster than the vault closes files itself`() throws {
      let closing = try ClosingFiles<File>()
      defer { closing.end() }
      let gate = Gate()
      // The other thread stands before the gate with these, and takes none of the next.
      for _ in 0..<16 { closing.add(File(gate: gate)) }
      gate.waitForSomebody()
      let waiting = (0..<128).map { _ in File() }
      for file in waiting { closing.add(file) }
      #expect(!waiting.contains { $0.isClosed })
      let tooMany = File()
      closing.add(tooMany)
      #expect(tooMany.closingThreads == [pthread_self()])
      gate.open()
      closing.finish()
      #expect(waiting.allSatisfy { $0.isClosed })
    }

    @Test func `who waits for all does not wait for those that programs close meanwhile`() throws {
      let closing = try ClosingFiles<File>()
      defer { closing.end() }
      let (first, own, second, isDone) = (Gate(), Gate(), Gate(), Gate())
      let before = (0..<16).map { _ in File(gate: first) } + [File(gate: own)]
      for file in before[..<16] { closing.add(file) }
      first.waitForSomebody()
      closing.add(before[16])
      Thread.detachNewThread {
        closing.finish()
        isDone.open()
      }
      // It has begun.
      own.waitForSomebody()
      // The other thread goes on with these, and stands before the second gate for as long as anybody waits.
      for _ in 0..<16 { closing.add(File(gate: second)) }
      own.open()
      first.open()
      isDone.pass()
      #expect(before.allSatisfy { $0.isClosed })
      second.open()
      closing.finish()
    }

    @Test func `at the end every file is closed, and whatever comes later at once`() throws {
      let closing = try ClosingFiles<File>()
      let (before, after) = ((0..<3).map { _ in File() }, File())
      for file in before { closing.add(file) }
      closing.end()
      #expect(before.allSatisfy { $0.isClosed })
      closing.add(after)
      #expect(after.closingThreads == [pthread_self()])
    }

    @Test func `every file of many threads is closed once`() async throws {
      let closing = try ClosingFiles<File>()
      defer { closing.end() }
      let files = (0..<8).map { _ in (0..<500).map { _ in File() } }
      await withTaskGroup { group in
        for files in files {
          group.addTask {
            for (number, file) in files.enumerated() {
              closing.add(file)
              if number.isMultiple(of: 50) { closing.startClosing() }
            }
          }
        }
      }
      closing.finish()
      #expect(files.joined().allSatisfy { $0.isClosed })
    }
  }
#endif
