internal import CofferSystem
internal import Foundation
internal import Synchronization

/// The room that is left on the vault's disk.
///
/// Content waits in memory until it joins, and names wait for a commit: where there is no room for them, whoever made them
/// would be told much later, or never. So where little is left, it is looked at before each change, and what does not fit
/// beside all that waits is refused at once. And commits are small there, so that what the vault keeps for removals
/// (``Ballast``) is enough for each of them.
final class DiskRoom: Sendable {
  /// Where less is free, little is left.
  private static let shortage: UInt64 = 32 << 20
  /// The same in files, on file systems that have only so many.
  private static let shortageOfFiles: UInt64 = 1024
  /// Between two looks, while there is plenty, at most so much is changed, and so long it takes. The disk is others' too.
  private static let byteCountBetweenLooks = 4 << 20
  private static let nanosecondsBetweenLooks: UInt64 = 100_000_000
  /// About what an operation's rows take until they are in their places: some pages in the index's log.
  static let operationByteCount = 64 << 10
  /// Stays free for the rows of what is in place already.
  static let reserve = 256 << 10

  private let folder: OwnedDescriptor
  // Of the last look; the greatest number where the disk does not say.
  private let freeBytes = Atomic(UInt64.max)
  private let freeFiles = Atomic(UInt64.max)
  private let lookTime = Atomic<UInt64>(0)
  /// Bytes that were changed since.
  private let unlooked = Atomic(0)

  private let tryTime = Atomic<UInt64>(0)

  /// The last commit found no room, whatever the disk says: there may be a quota.
  let hasRefused = Atomic(false)

  /// - Parameter folder: the vault's.
  init(folder: OwnedDescriptor) {
    self.folder = folder
    look()
  }

  /// Little was left at the last look.
  var isShort: Bool {
    hasRefused.load(ordering: .relaxed) || freeBytes.load(ordering: .relaxed) < Self.shortage
      || freeFiles.load(ordering: .relaxed) < Self.shortageOfFiles
  }

  /// Operations that one commit shall hold at most, from 16 up: the fewer, the less room it needs that somebody else may take.
  var operationLimit: Int { isShort ? 16 : Int(clamping: max(16, freeBytes.load(ordering: .relaxed) >> 21)) }

  /// Nobody fills so much in the time between two commits.
  var isAmple: Bool { freeBytes.load(ordering: .relaxed) >= 8 << 30 }

  /// Notes that about so many bytes are about to change; whether it must be asked first if they fit.
  func isShort(changing byteCount: Int) -> Bool {
    if byteCount >= Self.byteCountBetweenLooks { return true }
    let now = DispatchTime.now().uptimeNanoseconds
    let sum = unlooked.wrappingAdd(byteCount, ordering: .relaxed).newValue
    if sum >= Self.byteCountBetweenLooks || now &- lookTime.load(ordering: .relaxed) > Self.nanosecondsBetweenLooks {
      look()
    }
    return isShort
  }

  /// Whether so many bytes and new files fit. Nobody else is kept from taking them first.
  func has(_ byteCount: Int, fileCount: Int) -> Bool {
    look()
    return !hasRefused.load(ordering: .relaxed) && freeBytes.load(ordering: .relaxed) >= UInt64(byteCount)
      && freeFiles.load(ordering: .relaxed) >= UInt64(fileCount)
  }

  /// Whether to try once more what has found no room, for the sake of an operation that would be refused: not for each of many.
  func isWorthTrying() -> Bool {
    let now = DispatchTime.now().uptimeNanoseconds
    let last = tryTime.load(ordering: .relaxed)
    guard now &- last > Self.nanosecondsBetweenLooks else { return false }
    return tryTime.compareExchange(expected: last, desired: now, ordering: .relaxed).exchanged
  }

  /// Whether a commit is likely to find room, or worth trying.
  var mayCommit: Bool { !hasRefused.load(ordering: .relaxed) || isWorthTrying() }

  /// Looks how much is free.
  func look() {
    unlooked.store(0, ordering: .relaxed)
    lookTime.store(DispatchTime.now().uptimeNanoseconds, ordering: .relaxed)
    // Where the disk does not say, it refuses by itself. Some file systems have no sizes to tell, or no number of files.
    let space = try? folder.space()
    freeBytes.store(space.flatMap { $0.blocks > 0 ? $0.bytesForProcess : nil } ?? .max, ordering: .relaxed)
    freeFiles.store(space.flatMap { $0.files > 0 ? $0.freeFiles : nil } ?? .max, ordering: .relaxed)
  }
}

/// What a change adds to what the disk must hold, beside some rows.
struct Addition {
  let byteCount: Int
  /// Not more than no disk has: a source may say that it is as long as it likes.
  var contentByteCount: Int { min(byteCount, 1 << 60) }

  /// It changes what is in place: it may wait for room, as long as not much else does.
  var isInPlace = false

  /// A name, or an attribute.
  static let rows = Addition(byteCount: 0)
  static let inPlace = Addition(byteCount: 0, isInPlace: true)
  static func content(_ byteCount: Int) -> Addition { Addition(byteCount: byteCount) }
}
