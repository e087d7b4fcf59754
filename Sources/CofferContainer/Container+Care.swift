public import CofferFiles
internal import CofferSystem
internal import CofferVault

/// Looking after a vault as a whole: these ask nothing but an open vault, and let no content out.
extension Container {
  /// Holds everything in the vault against what must be there; with the content of larger files where `isDeep`. Damage
  /// is no error: it is in the report.
  public func verify(
    isDeep: Bool, progress: @escaping (VerificationProgress) -> Void = { _ in },
    isCancelled: @escaping () -> Bool = { false }
  ) throws -> VerificationReport {
    try ContainerError.catching {
      try vault.verify(isDeep: isDeep, progress: progress, isCancelled: isCancelled)
    }
  }

  /// Bytes that a backup would copy now, but for the index: what its progress counts to.
  public func backupByteCount() throws -> UInt64 { try ContainerError.catching { try vault.backupByteCount() } }

  /// Writes a copy of the vault, encrypted as it is, to a new or empty folder. Where it fails or is cancelled, nothing
  /// stays there.
  public func backup(to path: String, control: TransferControl = TransferControl()) throws {
    do {
      try vault.backup(to: path, control: control)
    } catch {
      switch error {
      case .system(let cause) where cause.isPlaceRefused:
        throw ContainerError(.cannotCreate, "the backup cannot be written there: \(cause)")
      case .full: throw ContainerError(.cannotCreate, "the disk that the backup goes to is full")
      default: throw ContainerError(error)
      }
    }
  }
}
