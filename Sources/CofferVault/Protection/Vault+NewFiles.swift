public import CofferFiles
internal import Synchronization

/// The class of what is made.
extension Vault {
  /// What is made from now on has this class or a stricter one, whatever its folder says. What is there stays as it is.
  public func requireOfNewFiles(_ weakest: ProtectionClass) {
    weakestNewClass.store(weakest.rawValue, ordering: .relaxed)
  }

  /// The class of a file or a folder that is made in `parent`.
  func newClass(in parent: Inode) -> ProtectionClass {
    guard let weakest = ProtectionClass(rawValue: weakestNewClass.load(ordering: .relaxed)),
      weakest.isStricter(than: parent.protection)
    else { return parent.protection }
    return weakest
  }
}
