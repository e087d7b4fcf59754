internal import Foundation

/// A file's cipher for somebody who uses it in many steps and from several threads, until it is dropped.
final class HeldCipher: KeyHolder, @unchecked Sendable {
  // Under `condition`.
  private var cipher: FileCipher?
  private var users = 0
  private let condition = NSCondition()

  init(_ cipher: FileCipher) { self.cipher = cipher }

  /// Throws `locked` once the cipher was dropped.
  func use<Result>(_ body: (FileCipher) throws -> Result) throws -> Result {
    condition.lock()
    guard let cipher else {
      condition.unlock()
      throw VaultError.locked
    }
    users += 1
    condition.unlock()
    defer {
      condition.lock()
      users -= 1
      if users == 0 { condition.broadcast() }
      condition.unlock()
    }
    return try body(cipher)
  }

  func dropKey() {
    condition.lock()
    defer { condition.unlock() }
    cipher = nil
    while users > 0 { condition.wait() }
  }
}
