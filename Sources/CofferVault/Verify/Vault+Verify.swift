public import CofferFiles

extension Vault {
  /// Holds everything in the vault against what must be there, without the content of larger files; with it where
  /// `isDeep`. Damage is no error: it is in the report, with the names that it touches.
  ///
  /// Throws `cancelled`, and `locked` where the keys of what is to be read are away, or go while it is read.
  public func verify(
    isDeep: Bool, progress: @escaping (VerificationProgress) -> Void = { _ in },
    isCancelled: @escaping () -> Bool = { false }
  ) throws(VaultError) -> VerificationReport {
    if !isReadOnly {
      try commit()
      // The objects of what was removed go behind the commit that says so, and their marks with the next one.
      roomGivenBack.wait()
      try commit()
    }
    return try VaultError.catching {
      let verifier = Verifier(self, isDeep: isDeep, progress: progress, isCancelled: isCancelled)
      try verifier.run()
      return verifier.report
    }
  }
}
