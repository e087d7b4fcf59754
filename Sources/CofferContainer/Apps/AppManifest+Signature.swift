public import CofferCrypto
public import CofferPolicy
internal import CofferSystem

extension AppManifest {
  private func signedBytes(executableDigest: [UInt8], teamKey: VerifyingKey) -> [UInt8] {
    var writer = ByteWriter()
    for text in ["coffer app manifest 1", identity.bundleId, identity.teamId, name, version, executable] {
      writer.write(counted: Array(text.utf8))
    }
    writer.write(UInt32(documentTypes.count))
    for type in documentTypes { writer.write(counted: Array(type.utf8)) }
    writer.write(counted: executableDigest)
    writer.write(counted: teamKey.bytes)
    return writer.bytes
  }

  /// This manifest with a team's signature, for the executable with `executableDigest` (SHA-256). A signature that it
  /// had is replaced.
  ///
  /// The signature covers every member but itself, so that it has one meaning whatever the JSON looks like:
  ///
  /// ```
  /// string "coffer app manifest 1"
  /// string bundleId, teamId, name, version, executable
  /// 4 bytes number of documentTypes, then a string for each, in the manifest's order
  /// string executableDigest (32 bytes), teamKey (32 bytes)
  /// ```
  /// A string is its length in 4 bytes, big-endian, and then its bytes; text is UTF-8.
  public func signed(by key: SigningKey, executableDigest: [UInt8]) throws(AppError) -> AppManifest {
    let bytes = signedBytes(executableDigest: executableDigest, teamKey: key.verifyingKey)
    return try AppManifest(
      identity: identity, name: name, version: version, executable: executable, documentTypes: documentTypes,
      seal: Seal(
        executableDigest: executableDigest, teamKey: key.verifyingKey, signature: key.signature(for: bytes)))
  }

  /// This manifest as one that its team key has signed.
  ///
  /// Whether that key is the right team's is policy's to say; whether the executable is the signed one,
  /// ``AppPackage/verified()``.
  ///
  /// - Throws: `AppError.unsigned`, or `AppError.notAuthentic` when anything in it was altered.
  public func verified() throws(AppError) -> VerifiedManifest {
    guard let seal else { throw .unsigned }
    let bytes = signedBytes(executableDigest: seal.executableDigest, teamKey: seal.teamKey)
    guard seal.teamKey.isValid(seal.signature, for: bytes) else { throw .notAuthentic }
    return VerifiedManifest(manifest: self, executableDigest: seal.executableDigest, teamKey: seal.teamKey)
  }
}

/// A manifest whose signature holds. Only ``AppManifest/verified()`` makes one.
public struct VerifiedManifest: Hashable, Sendable {
  public let manifest: AppManifest
  public let executableDigest: [UInt8]
  public let teamKey: VerifyingKey

  fileprivate init(manifest: AppManifest, executableDigest: [UInt8], teamKey: VerifyingKey) {
    self.manifest = manifest
    self.executableDigest = executableDigest
    self.teamKey = teamKey
  }

  public var identity: AppIdentity { manifest.identity }
}
