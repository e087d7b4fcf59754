import CofferFiles
import Foundation
import Glibc
import Synchronization
import Testing

@testable import CofferMount

@Suite struct WritesPastPagesTests {
  private static let file = InodeNumber(value: 7)
  private static let other = InodeNumber(value: 8)

  private func parts(_ writes: WritesPastPages, _ number: InodeNumber, _ range: Range<UInt64>) -> [Range<UInt64>] {
    var found: [Range<UInt64>] = []
    writes.bringingBack(number, range) { found.append($0) }
    return found
  }

  @Test func `what comes back of pages leaves out what is being written past them, and nothing else`() {
    let writes = WritesPastPages()
    #expect(parts(writes, Self.file, 0..<30) == [0..<30])
    writes.writing(Self.file, 10..<20) { _ in
      #expect(parts(writes, Self.file, 0..<30) == [0..<10, 20..<30])
      #expect(parts(writes, Self.file, 15..<30) == [20..<30])
      #expect(parts(writes, Self.file, 12..<18) == [])
      #expect(parts(writes, Self.file, 20..<30) == [20..<30])
      #expect(parts(writes, Self.other, 0..<30) == [0..<30])
      // What is appended.
      writes.writing(Self.file, 25..<(.max)) { _ in
        writes.writing(Self.file, 10..<20) { _ in }
        #expect(parts(writes, Self.file, 0..<30) == [0..<10, 20..<25])
      }
      #expect(parts(writes, Self.file, 0..<30) == [0..<10, 20..<30])
    }
    #expect(throws: POSIXError.self) { try writes.writing(Self.file, 0..<5) { _ in throw POSIXError(.ENOSPC) } }
    #expect(throws: POSIXError.self) { try writes.bringingBack(Self.file, 0..<5) { _ in throw POSIXError(.ENOSPC) } }
    writes.writing(Self.file, 0..<1) { _ in }
    #expect(parts(writes, Self.file, 0..<30) == [0..<30])
  }

  @Test func `who knows where it has written leaves out that part alone`() {
    let writes = WritesPastPages()
    writes.writing(Self.file, 10..<(.max)) { narrow in
      #expect(parts(writes, Self.file, 0..<30) == [0..<10])
      narrow(20..<25)
      #expect(parts(writes, Self.file, 0..<30) == [0..<20, 25..<30])
    }
    #expect(parts(writes, Self.file, 0..<30) == [0..<30])
  }

  /// Pages that were on their way when a write began have not left it out.
  @Test func `a write waits for pages that are being stored`() {
    let writes = WritesPastPages()
    let order = Mutex<[String]>([])
    let (isStarted, isDone) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
    writes.bringingBack(Self.file, 0..<30) { _ in
      Thread.detachNewThread {
        isStarted.signal()
        writes.writing(Self.file, 10..<20) { _ in order.withLock { $0.append("write") } }
        isDone.signal()
      }
      isStarted.wait()
      // Another file's does not wait.
      writes.writing(Self.other, 0..<30) { _ in }
      for _ in 0..<10_000 { sched_yield() }
      order.withLock { $0.append("pages") }
    }
    isDone.wait()
    #expect(order.withLock { $0 } == ["pages", "write"])
  }
}
