public import CofferCrypto
public import CofferPolicy

/// What an app says of itself, and, once its team has signed it, the proof.
public struct AppManifest: Hashable, Sendable {
  public let identity: AppIdentity
  /// What people call the app.
  public let name: String
  public let version: String
  /// Where the executable is, from the manifest's folder: names separated by `/`, none of them `.` or `..`.
  public let executable: String
  /// File name extensions that the app opens, in lower case, without the dot.
  public let documentTypes: [String]
  /// Absent until the manifest is signed.
  public let seal: Seal?

  /// What signing adds.
  public struct Seal: Hashable, Sendable {
    /// SHA-256 of the executable.
    public let executableDigest: [UInt8]
    public let teamKey: VerifyingKey
    /// Ed25519 (RFC 8032), 64 bytes, over every other member; ``AppManifest/signed(by:executableDigest:)`` says how.
    public let signature: [UInt8]
  }

  /// Throws `AppError.malformedManifest` unless every value is of its form.
  public init(
    identity: AppIdentity, name: String, version: String, executable: String, documentTypes: [String],
    seal: Seal? = nil
  ) throws(AppError) {
    func demand(_ condition: Bool, _ what: String) throws(AppError) {
      if !condition { throw .malformedManifest(what) }
    }
    try demand(PolicyText.isApp(identity), "bundleId or teamId")
    try demand(PolicyText.isName(name), "name")
    try demand(PolicyText.isName(version) && version.utf8.count <= 64, "version")
    try demand(Self.isExecutablePath(executable), "executable")
    try demand(documentTypes.count <= 256 && documentTypes.allSatisfy(PolicyText.isExtension), "documentTypes")
    try demand(Set(documentTypes).count == documentTypes.count, "documentTypes")
    try demand(seal.map { $0.executableDigest.count == Digest.byteCount } ?? true, "executableDigest")
    try demand(seal.map { $0.signature.count == 64 } ?? true, "signature")
    self.identity = identity
    self.name = name
    self.version = version
    self.executable = executable
    self.documentTypes = documentTypes
    self.seal = seal
  }

  /// A relative path that leads down only.
  private static func isExecutablePath(_ path: String) -> Bool {
    (1...1024).contains(path.utf8.count) && !path.utf8.contains(0)
      && path.utf8.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false).allSatisfy { part in
        (1...255).contains(part.count) && !part.elementsEqual(".".utf8) && !part.elementsEqual("..".utf8)
      }
  }
}
