internal import CofferContainer
internal import Foundation
internal import Synchronization

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
final class ClosingFiles<File: ClosingFile>: Sendable {
  private let queue = DispatchQueue(label: "coffer mount closing")
  private let state = Mutex(State())

  private struct State {
    var files: [File] = []
    var isClosing = false

    /// Whether a thread is needed; one alone closes files.
    mutating func begin() -> Bool {
      defer { isClosing = true }
      return !isClosing
    }
  }

  /// So many files wait before somebody is woken for them, and at most.
  private static var portion: Int { 16 }
  private static var limit: Int { 128 }

  /// Closes a file, soon.
  func add(_ file: File) {
    guard file.hasUnjoinedChanges else { return Self.close(file) }
    let (isTaken, begins) = state.withLock { state -> (Bool, Bool) in
      guard state.files.count < Self.limit else { return (false, false) }
      state.files.append(file)
      return (true, state.files.count >= Self.portion && state.begin())
    }
    // Whoever writes faster than the vault can take waits here.
    if !isTaken { Self.close(file) }
    if begins { queue.async { self.closeAll() } }
  }

  /// No more requests come for now: what waits need not wait for others.
  func startClosing() {
    if state.withLock({ !$0.files.isEmpty && $0.begin() }) { queue.async { self.closeAll() } }
  }

  /// Some of the files that were added are not closed yet.
  var isBusy: Bool { state.withLock { $0.isClosing || !$0.files.isEmpty } }

  /// Returns when every file that was added is closed.
  func finish() {
    closeAll()
    queue.sync {}
  }

  private func closeAll() {
    while true {
      let files = state.withLock { state -> [File] in
        defer { state.files = [] }
        if state.files.isEmpty { state.isClosing = false }
        return state.files
      }
      if files.isEmpty { return }
      for file in files { Self.close(file) }
    }
  }

  /// A failure is remembered by the file, for those who have it open, and found again by whoever commits.
  private static func close(_ file: File) { try? file.close() }
}
