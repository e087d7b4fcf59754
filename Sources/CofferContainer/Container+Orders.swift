public import CofferKeys
public import CofferPolicy
internal import CofferVault
internal import Foundation

/// What the device remembers of its company's orders.
extension Container {
  private static let ordersSetting = "orders"

  /// The orders that were begun and answered on this device. They go back with an older copy of the vault; what an order
  /// destroyed does not come back with it.
  public func orders() throws -> OrderBook {
    try ContainerError.catching {
      guard let stored = try vault.setting(Self.ordersSetting) else { return OrderBook() }
      guard let book = try? JSONDecoder().decode(OrderBook.self, from: Data(stored)) else {
        throw ContainerError(.damaged, "what the vault keeps of its company's orders is damaged")
      }
      return book
    }
  }

  /// Keeps them, durable when it returns.
  public func keep(_ orders: OrderBook) throws {
    try ContainerError.catching {
      try vault.setSetting(Self.ordersSetting, to: Array(try JSONEncoder().encode(orders)))
      // A file that cannot be stored keeps no order back.
      try vault.commitNames()
    }
  }

  /// Whether a key store still has a part of what opens a vault or a copy of it, also where a wipe was begun and cut.
  public static func hasKeys(of vault: VaultID, in keyStore: any KeyStore) throws -> Bool {
    do throws(KeyStoreError) {
      return try keyStore.holdsSecrets(of: vault)
    } catch {
      throw ContainerError(VaultError.keyStore(error))
    }
  }

  /// Destroys what a key store has left of a vault whose wipe was begun and cut, wherever its folder is.
  ///
  /// - Returns: whether one was begun; `false` has destroyed nothing.
  public static func destroyKeysLeft(of vault: VaultID, in keyStore: any KeyStore) throws -> Bool {
    do {
      return try keyStore.withLock(of: vault) {
        guard try keyStore.keeps(.wiped, of: vault) else { return false }
        try keyStore.removeAll(of: vault, keeping: [.wiped])
        return true
      }
    } catch let error as KeyStoreError {
      if error == .nothingKept { return false }
      throw ContainerError(VaultError.keyStore(error))
    }
  }
}
