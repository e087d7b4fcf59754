internal import CofferSystem
internal import CofferVault
internal import Synchronization

/// How many views a container has. While there is one, the vault keeps more in memory: clients of views list folders and open
/// files again and again, and read and write wherever they like.
final class ViewCount: Sendable {
  /// Names that are remembered: as many as a large tree of sources has. With what they stand for, about 400 bytes each.
  private static let listedCount = 65_536
  private let count = Mutex(0)
  /// The views that began, ever.
  private let began = Atomic(0)

  /// Returns the view's number, and whether there are others.
  func didBegin(_ vault: Vault) -> (number: Int, hasOthers: Bool) {
    count.withLock { count in
      count += 1
      if count == 1 {
        vault.remember(Self.listedCount)
        vault.favourRandomAccess(true)
      }
      return (began.wrappingAdd(1, ordering: .relaxed).newValue, count > 1)
    }
  }

  /// Another view has begun since the one of that number.
  func hasFollower(of number: Int) -> Bool { began.load(ordering: .acquiring) != number }

  func didEnd(_ vault: Vault) {
    count.withLock { count in
      count -= 1
      if count == 0 {
        vault.remember(nil)
        vault.favourRandomAccess(false)
      }
    }
  }
}
