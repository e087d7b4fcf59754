internal import CofferContainer
internal import CofferSystem
internal import Foundation

/// What ``ClosingFiles`` closes.
protocol ClosingFile: Sendable {
  /// Closing takes time: what was written has yet to join the vault.
  var hasUnjoinedChanges: Bool { get }
  func close() throws
}

extension ViewFile: ClosingFile {}

/// Files that programs have closed and that still have to join the vault.
///
/// The kernel waits for nobody who closes a file, but the next request waits for a thread that is busy with that. So files
/// are closed on another thread, some at a time, for to wake that costs as much as to close one. A program that makes many
/// files has two processors work for it.
final class ClosingFiles<File: ClosingFile>: @unchecked Sendable {
  private let condition = NSCondition()
  // Under `condition`.
  private var files: [File] = []
  /// The thread is to close what there is, and has not begun.
  private var isWanted = false
  private var hasEnded = false
  /// What was taken to be closed, by numbers, and is not closed yet.
  private var portions: Set<Int> = []
  private var portionCount = 0
  /// The thread's.
  private var isClosing = false

  /// So many files wait before the thread is woken for them, and at most.
  private static var portionSize: Int { 16 }
  private static var limit: Int { 128 }

  /// Throws where the system gives no thread.
  init() throws(SystemError) {
    try NewThread.start { [self] in
      while waitUntilWanted() { closeAll() }
    }
  }

  /// Closes a file, soon.
  func add(_ file: File) {
    guard file.hasUnjoinedChanges else { return Self.close(file) }
    let isTaken = condition.withLock {
      guard files.count < Self.limit, !hasEnded else { return false }
      files.append(file)
      if files.count >= Self.portionSize { wantThread() }
      return true
    }
    // Whoever writes faster than the vault can take waits here.
    if !isTaken { Self.close(file) }
  }

  /// No more requests come for now: what waits need not wait for others.
  func startClosing() { condition.withLock { if !files.isEmpty { wantThread() } } }

  /// Some of the files that were added are not closed yet.
  var isBusy: Bool { condition.withLock { !portions.isEmpty || !files.isEmpty } }

  /// Begins to close what was added before: what is given says, asked again and again, whether all of that is closed.
  func closing() -> () -> Bool {
    let (before, next) = condition.withLock {
      if files.isEmpty { return (portions, portionCount) }
      wantThread()
      return (portions, portionCount + 1)
    }
    return { [self] in
      condition.withLock { portionCount >= next && portions.isDisjoint(with: before) && !portions.contains(next) }
    }
  }

  /// Returns when every file is closed that was added before; programs may go on to close others.
  func finish() {
    let (before, own) = condition.withLock { (portions, takeAll()) }
    close(own)
    condition.withLock {
      while !portions.isDisjoint(with: before) { condition.wait() }
    }
  }

  /// Ends the thread, when everything is closed that was added before; what is added from now on is closed at once.
  func end() {
    condition.withLock {
      hasEnded = true
      condition.broadcast()
    }
    finish()
  }

  /// Called under `condition`.
  private func wantThread() {
    guard !isWanted, !isClosing else { return }
    isWanted = true
    condition.broadcast()
  }

  private func waitUntilWanted() -> Bool {
    condition.withLock {
      while !isWanted, !hasEnded { condition.wait() }
      if hasEnded { return false }
      isWanted = false
      return true
    }
  }

  /// On the thread: closes files while there are any.
  private func closeAll() {
    while true {
      let taken = condition.withLock {
        isClosing = !files.isEmpty
        return takeAll()
      }
      if taken.files.isEmpty { return }
      close(taken)
    }
  }

  /// Files that one thread closes.
  private typealias Portion = (number: Int, files: [File])

  /// Called under `condition`.
  private func takeAll() -> Portion {
    defer { files = [] }
    portionCount += 1
    if !files.isEmpty { portions.insert(portionCount) }
    return (portionCount, files)
  }

  private func close(_ portion: Portion) {
    if portion.files.isEmpty { return }
    for file in portion.files { Self.close(file) }
    condition.withLock {
      portions.remove(portion.number)
      condition.broadcast()
    }
  }

  /// A failure is remembered by the file, for those who have it open, and found again by whoever commits.
  private static func close(_ file: File) { try? file.close() }
}
