public import CofferCrypto
internal import CofferFiles
public import CofferKeys
public import CofferSystem
internal import CofferVault
internal import Synchronization

/// A vault behind its gate: the only way from stored files to anything outside.
///
/// Names may be listed and changed by whoever opened the vault. Content passes only through an operation that asks the
/// gate first and moves no byte before the answer.
public final class Container: Sendable {
  let vault: Vault
  let gate: Gate
  let detector: ContentTypeDetector
  let views = ViewCount()
  /// What the company's escrow key became at an unlock, until somebody asks.
  let escrowChange = Mutex<EscrowChange?>(nil)

  init(_ vault: Vault, keyStore: any KeyStore, sniffer: any ContentSniffer, time: any TimeSource) throws {
    self.vault = vault
    detector = ContentTypeDetector(sniffer: sniffer)
    gate = try Gate(vault: vault, keyStore: keyStore, time: time)
    recordEscrowUses()
  }

  /// Makes a vault in an empty or new folder.
  ///
  /// - Parameters:
  ///   - derivation: the cost of deriving the passcode's key; see ``PasscodeDerivation``.
  ///   - keys: what opens it beside the passcode.
  ///   - isCancelled: where it says so in time, nothing is made, and `cancelled` is thrown.
  public static func create(
    at path: String, keyStore: any KeyStore, passcode: SecretBytes, derivation: PasscodeDerivation,
    keys: KeyOptions = KeyOptions(), sniffer: any ContentSniffer, time: any TimeSource = SystemTime(),
    isCancelled: () -> Bool = { false }
  ) throws -> Container {
    try ContainerError.catching {
      try Container(
        Vault.create(
          at: path, keyStore: keyStore, passcode: passcode, derivation: derivation, keybag: keys.keybag, time: time,
          isCancelled: isCancelled),
        keyStore: keyStore, sniffer: sniffer, time: time)
    }
  }

  /// Throws where no vault can be made at `path`, because something else is there. Changes nothing.
  public static func requireVacant(at path: String) throws {
    try ContainerError.catching { try Vault.requireVacant(at: path) }
  }

  /// Opens a vault. `passcode` is called once it is known that there is one; what it throws passes through.
  ///
  /// - Parameter acceptingOlderState: take a state that is older than the newest one this device has seen, or that went
  ///   another way, as the vault from now on: for a backup that was put back. What the device saw before can then no
  ///   longer be changed.
  public static func open(
    at path: String, keyStore: any KeyStore, passcode: () throws -> SecretBytes, sniffer: any ContentSniffer,
    acceptingOlderState: Bool = false, time: any TimeSource = SystemTime()
  ) throws -> Container {
    try openWithAccess(
      at: path, keyStore: keyStore, passcode: passcode, sniffer: sniffer, acceptingOlderState: acceptingOlderState,
      time: time
    ).container
  }

  /// As above, with leave to change what opens it.
  static func openWithAccess(
    at path: String, keyStore: any KeyStore, passcode: () throws -> SecretBytes, sniffer: any ContentSniffer,
    acceptingOlderState: Bool = false, time: any TimeSource
  ) throws -> (container: Container, access: VaultAccess) {
    try ContainerError.telling(Vault.passcodeAttempts(at: path, keyStore: keyStore, time: time)) {
      var options = VaultOptions()
      options.acceptsOlderState = acceptingOlderState
      var (vault, access) = try Vault.openWithAccess(
        at: path, keyStore: keyStore, passcode: passcode, time: time, options: options)
      let container = try Container(vault, keyStore: keyStore, sniffer: sniffer, time: time)
      container.settleEscrow(&access)
      return (container, access)
    }
  }

  public var id: VaultID { vault.id }
  /// The vault is older than what this device has seen: it can be read, and every change is refused.
  public var isReadOnly: Bool { vault.isReadOnly }
  /// The key store has lost its word on the vault: whether it is the newest, and whether a company has a say in it.
  public var isUnknownToKeyStore: Bool { vault.isBound == nil }

  /// There was no room for all that waits in memory when it was to be stored last: it is lost if this process ends before.
  public var waitsForRoom: Bool { vault.waitsForRoom }
  /// Whether so much more finds room on the vault's disk now. Nobody else is kept from taking it first.
  public func hasRoom(forBytes byteCount: UInt64) -> Bool { vault.hasRoom(forBytes: byteCount) }

  /// Makes every change so far durable.
  public func commit() throws { try ContainerError.catching(storeAll) }

  /// Makes names and whole files durable that were stored or changed. What programs have written to files that are open is not
  /// waited for: where one of those cannot be stored, that is no failure of the caller's.
  public func commitChanges() throws {
    try ContainerError.catching {
      try gate.decisions.settle()
      try vault.commitNames()
    }
  }

  /// As ``commit()``, with the vault's own errors.
  func storeAll() throws {
    try gate.decisions.settle()
    try vault.commit()
  }

  /// Commits, and gives the vault back to others.
  public func close() throws {
    try ContainerError.catching {
      // A vault that was wiped has no place for it any more, and is given back all the same.
      try? gate.decisions.settle()
      try vault.close()
    }
  }
}
