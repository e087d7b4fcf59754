internal import CofferSystem
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
  /// Bytes that are added between two looks while there is plenty: a part of the shortage, which so is seen before it is used up.
  private static let byteCountBetweenLooks = 4 << 20
  /// About what an operation's rows take until they are in their places: some pages in the index's log.
  static let operationByteCount = 64 << 10
  /// Stays free for the rows of what is in place already.
  static let reserve = 256 << 10

  private let folder: OwnedDescriptor
  private let isLittle = Atomic(false)
  private let unlooked = Atomic(0)

  /// - Parameter folder: the vault's.
  init(folder: OwnedDescriptor) {
    self.folder = folder
    _ = free()
  }

  /// Little was left at the last look.
  var isShort: Bool { isLittle.load(ordering: .relaxed) }

  /// Notes that so many bytes are about to be added; whether it must be asked first if they fit.
  func isShort(adding byteCount: Int) -> Bool {
    if isShort || byteCount >= Self.byteCountBetweenLooks { return true }
    let sum = unlooked.wrappingAdd(byteCount, ordering: .relaxed).newValue
    guard sum >= Self.byteCountBetweenLooks else { return false }
    unlooked.store(0, ordering: .relaxed)
    _ = free()
    return isShort
  }

  /// Whether so many bytes fit. Nobody else is kept from taking them first.
  func has(_ byteCount: Int) -> Bool {
    // Where the disk does not say, it refuses by itself.
    guard let free = free() else { return true }
    return free >= UInt64(byteCount)
  }

  private func free() -> UInt64? {
    // Some file systems have no sizes to tell.
    guard let space = try? folder.space(), space.blocks > 0 else { return nil }
    let free = space.bytesForProcess
    isLittle.store(free < Self.shortage, ordering: .relaxed)
    return free
  }
}

/// What a change adds to what the disk must hold, beside some rows.
struct Addition {
  let byteCount: Int

  /// A name, or an attribute.
  static let rows = Addition(byteCount: 0)
  static func content(_ byteCount: Int) -> Addition { Addition(byteCount: byteCount) }
}
