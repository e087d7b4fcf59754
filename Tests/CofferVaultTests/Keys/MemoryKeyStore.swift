import CofferKeys
import CofferSystem
import Foundation
import Synchronization

/// A key store in memory whose process can be made to end at a write.
final class MemoryKeyStore: KeyStore {
  /// The process ended here.
  struct Ended: Error {}

  private struct State {
    var items: [KeyStoreItem: [UInt8]] = [:]
    /// Writes until the end, and whether the last one is stored.
    var end: (count: Int, isStored: Bool)?
  }
  private let state = Mutex(State())
  private let lock = NSLock()

  func read(_ item: KeyStoreItem, of vault: VaultID) throws(KeyStoreError) -> SecretBytes? {
    state.withLock { $0.items[item] }.map { bytes in bytes.withUnsafeBytes { SecretBytes(copying: $0) } }
  }

  func write(_ value: SecretBytes, as item: KeyStoreItem, of vault: VaultID) throws(KeyStoreError) {
    let isEnding = state.withLock { state in
      let isLast = state.end?.count == 0
      if !isLast || state.end?.isStored == true { state.items[item] = value.withUnsafeBytes { Array($0) } }
      state.end?.count -= 1
      return isLast
    }
    if isEnding { throw .system(SystemError(code: 4, call: "the end")) }
  }

  func removeAll(of vault: VaultID, keeping kept: Set<KeyStoreItem>) throws(KeyStoreError) {
    state.withLock { $0.items = $0.items.filter { kept.contains($0.key) } }
  }

  func withLock<Result>(of vault: VaultID, _ body: () throws -> Result) throws -> Result {
    guard state.withLock({ !$0.items.isEmpty }) else { throw KeyStoreError.nothingKept }
    lock.lock()
    defer { lock.unlock() }
    return try body()
  }

  /// Ends the process at the write after so many others, before or behind it.
  func end(afterWrites count: Int, storing isStored: Bool) {
    state.withLock { $0.end = (count, isStored) }
  }

  /// The next process begins; whether the last one had ended.
  func begin() -> Bool {
    state.withLock { state in
      defer { state.end = nil }
      return state.end.map { $0.count < 0 } ?? false
    }
  }

  subscript(item: KeyStoreItem) -> [UInt8]? {
    get { state.withLock { $0.items[item] } }
    set { state.withLock { $0.items[item] = newValue } }
  }
}
