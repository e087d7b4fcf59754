internal import CofferContainer
internal import CofferFiles
internal import CofferSystem
internal import Foundation

/// Reads folders that a program is about to list, on a thread of its own, so that they are in memory when it comes to them.
///
/// What a listing shows is opened row by row, and whoever asks for it waits, perhaps for a commit as well. A program that removes a
/// tree, or searches it, does something else between two listings.
final class FoldersAhead: @unchecked Sendable {
  /// As a ``ContainerView`` has it.
  struct Source: Sendable {
    /// Whether there is nothing to read.
    let isAtHand: @Sendable (InodeNumber) -> Bool
    /// Reads a portion behind a cookie; returns the cookie of its last name, nil where there are no more, or nothing can be read.
    let read: @Sendable (InodeNumber, _ cookie: UInt64?, _ limit: Int) -> UInt64?
  }

  private let source: Source
  private let condition = NSCondition()
  // Under `condition`.
  private var walk = FolderWalk()
  /// What is to be read, the last one first: a walk goes down before it goes on.
  private var wanted: [FolderWalk.Coming] = []
  /// What is being read.
  private var present: InodeNumber?
  private var hasEnded = false
  private var isRunning = true

  /// Folders that wait to be read, at most.
  static let wantedLimit = 2 * FolderWalk.depth
  /// Names of a folder that are read at most: who lists so many is busy with them.
  static let nameLimit = 2048
  /// Names read at a time: so few rows that a commit that is under way lets them in.
  static let portion = 32

  /// Throws where the system gives no thread.
  convenience init(_ view: ContainerView) throws(SystemError) {
    try self.init(
      Source { folder in
        view.isListingAtHand(folder)
      } read: { folder, cookie, limit in
        try? view.readFolder(folder, after: cookie, limit: limit, withAttributes: true).last?.cookie
      })
  }

  init(_ source: Source) throws(SystemError) {
    self.source = source
    try NewThread.start { [self] in
      while let folder = next() { read(folder) }
      condition.withLock {
        isRunning = false
        condition.broadcast()
      }
    }
  }

  /// A program begins to list a folder.
  func willList(_ folder: InodeNumber) {
    let following = condition.withLock {
      wanted.removeAll { $0.folder == folder }
      // Whoever lists it goes on from what is in memory.
      if present == folder { present = nil }
      return walk.willList(folder)
    }
    want(following)
  }

  /// A program is shown folders, in this order.
  func didShow(_ folders: [InodeNumber], of parent: InodeNumber) {
    if folders.isEmpty { return }
    want(condition.withLock { walk.didShow(folders, of: parent) }.map { [$0] } ?? [])
  }

  /// Ends the thread, and returns when it has ended. Nothing is read any more.
  func end() {
    condition.withLock {
      hasEnded = true
      present = nil
      condition.broadcast()
      while isRunning { condition.wait() }
    }
  }

  /// - Parameter folders: of one parent, the nearest first.
  private func want(_ folders: [FolderWalk.Coming]) {
    let folders = folders.filter { !source.isAtHand($0.folder) }
    guard let parent = folders.first?.parent else { return }
    condition.withLock {
      // Behind those that come before them in the same listing.
      let place = wanted.firstIndex { $0.parent == parent } ?? wanted.endIndex
      wanted.insert(contentsOf: folders.reversed(), at: place)
      if wanted.count > Self.wantedLimit { wanted.removeFirst(wanted.count - Self.wantedLimit) }
      condition.broadcast()
    }
  }

  private func next() -> InodeNumber? {
    condition.withLock {
      while !hasEnded, wanted.isEmpty { condition.wait() }
      if hasEnded { return nil }
      present = wanted.removeLast().folder
      return present
    }
  }

  private func read(_ folder: InodeNumber) {
    var cookie: UInt64?
    var count = 0
    while count < Self.nameLimit, condition.withLock({ present == folder }) {
      guard let last = source.read(folder, cookie, Self.portion) else { return }
      cookie = last
      count += Self.portion
    }
  }
}
