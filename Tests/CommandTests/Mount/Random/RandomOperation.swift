import CofferTestSupport
import Glibc

/// One call of a random run: on a path, or on one of a few open files.
enum RandomOperation: Hashable, Sendable {
  case makeFile(String, mode: mode_t, isExclusive: Bool)
  case makeFolder(String, mode: mode_t)
  case makeNode(String, kind: mode_t)
  case symlink(String, target: String)
  case link(String, String, following: Bool)
  case rename(String, String, flags: CUnsignedInt)
  case unlink(String)
  case removeFolder(String)
  case stat(String, following: Bool)
  case chmod(String, mode_t)
  case chown(String, user: Int, group: Int)
  case setTimes(String, Moment, Moment)
  case truncate(String, Int)
  case setAttribute(String, name: String, count: Int, seed: UInt64, flags: CInt)
  case removeAttribute(String, name: String)
  case list(String)
  case open(Int, String, flags: CInt)
  case close(Int)
  case read(Int, at: Int, count: Int)
  case write(Int, at: Int, count: Int, seed: UInt64)
  case append(Int, count: Int, seed: UInt64)
  case resize(Int, Int)
  case change(Int, CInt, at: Int, count: Int)
  case copy(from: Int, at: Int, to: Int, place: Int, count: Int)
  case map(Int, at: Int, count: Int, seed: UInt64)
  case findData(Int, at: Int)
  case sync(Int)
  case statOpen(Int)
  case chmodOpen(Int, mode_t)

  /// How many files are open at once at most.
  static let slots = 5
}

extension RandomOperation {
  private static let names = ["a", "b", "c", "d", "e"]
  private static let attributes = ["user.a", "user.b", "user.ü"]

  /// Few names, so that operations meet.
  private static func path(_ generator: inout SeededGenerator) -> String {
    let depth = [1, 1, 1, 2, 2, 3].randomElement(using: &generator)!
    return (0..<depth).map { _ in names.randomElement(using: &generator)! }.joined(separator: "/")
  }

  /// About the sizes at which a store of blocks changes its ways, and up to two megabytes.
  private static func size(_ generator: inout SeededGenerator) -> Int {
    let base = [0, 1, 100, 4096, 8192, 32_768, 65_536, 131_072, 1 << 20].randomElement(using: &generator)!
    return max(0, base + Int.random(in: -2...2, using: &generator) + (generator.once(in: 3) ? base / 3 : 0))
  }

  private static func count(_ generator: inout SeededGenerator) -> Int { min(size(&generator), 150_000) }

  private static func mode(_ generator: inout SeededGenerator) -> mode_t {
    let mode = [0o644, 0o600, 0o755, 0o777, 0o1777, 0o4755, 0o2755, 0o000, 0o444].randomElement(using: &generator)!
    // Everything is to be looked at afterwards, for which root needs no right.
    return mode_t(mode) | (Person.canBeAnother ? 0 : 0o700)
  }

  private static func slot(_ generator: inout SeededGenerator) -> Int { Int.random(in: 0..<slots, using: &generator) }

  /// So many operations, which find something there from the beginning.
  static func series(seed: UInt64, count: Int) -> [RandomOperation] {
    var generator = SeededGenerator(seed: seed)
    let folders = ["a", "b", "a/b", "a/a"].map { makeFolder($0, mode: 0o755) }
    let files = ["c", "a/c", "b/c", "a/b/d"].map { makeFile($0, mode: 0o644, isExclusive: true) }
    return folders + files + (0..<(count - folders.count - files.count)).map { _ in random(&generator) }
  }

  private static func random(_ generator: inout SeededGenerator) -> RandomOperation {
    switch Int.random(in: 0..<4, using: &generator) {
    case 0: onNames(&generator)
    case 1: onNodes(&generator)
    default: onOpenFiles(&generator)
    }
  }

  private static func onNames(_ generator: inout SeededGenerator) -> RandomOperation {
    let path = path(&generator)
    switch Int.random(in: 0..<16, using: &generator) {
    case 0...2: return .makeFile(path, mode: mode(&generator), isExclusive: generator.once(in: 2))
    case 3...4: return .makeFolder(path, mode: [0o755, 0o700, 0o1777].randomElement(using: &generator)!)
    case 5: return .makeNode(path, kind: [S_IFIFO, S_IFSOCK, S_IFREG].randomElement(using: &generator)!)
    case 6: return .symlink(path, target: self.path(&generator))
    case 7...8: return .link(path, self.path(&generator), following: generator.once(in: 3))
    case 9...12:
      let flags = [0, 0, RenameFlag.noReplace, RenameFlag.exchange].randomElement(using: &generator)!
      return .rename(path, self.path(&generator), flags: flags)
    case 13...14: return .unlink(path)
    default: return .removeFolder(path)
    }
  }

  private static func onNodes(_ generator: inout SeededGenerator) -> RandomOperation {
    let path = path(&generator)
    switch Int.random(in: 0..<9, using: &generator) {
    case 0: return .stat(path, following: generator.once(in: 2))
    case 1: return .chmod(path, mode(&generator))
    case 2:
      // Not -1 for both: what that changes is left to the file system.
      let numbers = [0, 1, 1001, 65_534]
      let (user, group) = (numbers.randomElement(using: &generator)!, numbers.randomElement(using: &generator)!)
      return .chown(path, user: generator.once(in: 4) ? -1 : user, group: group)
    case 3:
      func moment() -> Moment {
        Moment(
          Int.random(in: 0..<2_000_000_000, using: &generator), Int.random(in: 0..<1_000_000_000, using: &generator))
      }
      return .setTimes(path, moment(), moment())
    case 4: return .truncate(path, size(&generator))
    case 5, 6:
      return .setAttribute(
        path, name: attributes.randomElement(using: &generator)!, count: Int.random(in: 0...300, using: &generator),
        seed: generator.next() % 1000, flags: CInt.random(in: 0...2, using: &generator))
    case 7: return .removeAttribute(path, name: attributes.randomElement(using: &generator)!)
    default: return .list(path)
    }
  }

  private static func onOpenFiles(_ generator: inout SeededGenerator) -> RandomOperation {
    let slot = slot(&generator)
    let seed = generator.next() % 1000
    switch Int.random(in: 0..<24, using: &generator) {
    case 0...5:
      let flags = [
        O_RDWR, O_RDWR | O_CREAT, O_RDWR | O_CREAT, O_RDWR | O_CREAT | O_TRUNC, O_RDONLY, O_WRONLY | O_CREAT,
        O_RDWR | O_CREAT | O_APPEND, O_RDWR | O_TRUNC, O_RDONLY | O_DIRECTORY, O_RDWR | O_CREAT | O_NOFOLLOW,
      ]
      // A fifo without its other end is an error and nobody waits.
      return .open(slot, path(&generator), flags: flags.randomElement(using: &generator)! | O_NONBLOCK)
    case 6: return .close(slot)
    case 7...8: return .read(slot, at: size(&generator), count: count(&generator))
    case 9...12: return .write(slot, at: size(&generator), count: count(&generator), seed: seed)
    case 13: return .append(slot, count: count(&generator), seed: seed)
    case 14: return .resize(slot, size(&generator))
    case 15...16:
      let changes = [
        RangeChange.allocate, RangeChange.keepSize, RangeChange.punchHole | RangeChange.keepSize, RangeChange.zero,
        RangeChange.zero | RangeChange.keepSize,
      ]
      return .change(
        slot, changes.randomElement(using: &generator)!, at: size(&generator), count: count(&generator))
    case 17:
      return .copy(
        from: slot, at: size(&generator), to: self.slot(&generator), place: size(&generator),
        count: count(&generator))
    case 18...19: return .map(slot, at: size(&generator), count: count(&generator), seed: seed)
    case 20: return .findData(slot, at: size(&generator))
    case 21: return .sync(slot)
    case 22: return .statOpen(slot)
    default: return .chmodOpen(slot, mode(&generator))
    }
  }
}
