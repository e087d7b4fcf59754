public import CofferFiles

/// Keeps what has no name in a vault for somebody who may still ask for it: a mount, whose kernel knows what programs hold without having
/// it open. What loses its last name stays then with everything that it has.
public final class NodeHold: Sendable {
  private let vault: Vault
  private let number: Int

  fileprivate init(
    _ vault: Vault, _ holds: @escaping @Sendable (InodeNumber) -> Bool, _ hearing: @escaping @Sendable () -> () -> Bool
  ) {
    self.vault = vault
    number = vault.files.addHolder(holds, hearing)
  }

  deinit { letGoOfAll() }

  /// Ends the hold.
  public func letGoOfAll() {
    vault.files.removeHolder(number)
    vault.removeLetGo()
  }

  /// `holds` is `false` of this number from now on, where it was `true`. What it was goes with others, and with the next commit at the
  /// latest: an operation for each would keep whoever removes many waiting.
  public func letGo(of number: InodeNumber) {
    switch vault.files.letGo(of: number) {
    case .nothing: break
    case .soon: vault.commitSoon()
    case .now: vault.removeLetGo()
    }
  }
}

extension Vault {
  /// Holds what `holds` says, as long as the hold is there. It is asked under locks of the vault's: it must be quick, and not use the vault.
  ///
  /// - Parameter hearing: called where room is short. What it returns is asked again and again by the thread that called: whether the holder
  ///   has heard of all that programs had let go of before. Called without locks.
  public func hold(
    _ holds: @escaping @Sendable (InodeNumber) -> Bool,
    hearing: @escaping @Sendable () -> () -> Bool = { { true } }
  ) -> NodeHold { NodeHold(self, holds, hearing) }
}
