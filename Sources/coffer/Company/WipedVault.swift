internal import CofferContainer
internal import CofferKeys
internal import Foundation

/// A vault whose keys were destroyed by order, once nobody has it open any more.
struct WipedVault {
  let vault: VaultID
  let path: String
  let keyStore: String

  /// Tries of the receipt, each of which takes half a minute at most. Later ones are those of other commands.
  private static let tries = 4

  /// As ``finish()``, on the thread that waits for it.
  func finishWaiting() {
    let end = DispatchSemaphore(value: 0)
    Task.detached {
      await finish()
      end.signal()
    }
    end.wait()
  }

  /// Removes what is left, and tells the company.
  func finish() async {
    _ = try? Container.removeRemains(at: path, keyStore: FileKeyStore(path: keyStore), expecting: vault)
    for number in 1...Self.tries where await !KeptReceipt.deliverAll() && number < Self.tries {
      try? await Task.sleep(for: .seconds(5 * number))
    }
  }
}
