public import CofferCrypto
public import CofferSystem

/// A company's escrow key in files: the private one is `coffer-escrow-key-1 ` and 64 hexadecimal digits, the public one
/// `coffer-escrow-public-key-1 ` and 64.
public enum EscrowKeyFile {
  private static let secret = SecretLineFile(header: "coffer-escrow-key-1 ", byteCount: HybridKey.byteCount)
  private static let publicHeader = "coffer-escrow-public-key-1 "

  /// Makes a new key and writes its private half to `path`, readable by its owner only.
  ///
  /// - Returns: the public half as text, which is no secret.
  public static func create(at path: String, files: FileSystem = FileSystem()) throws -> String {
    let key = HybridKey()
    try telling { () throws(SecretLineFile.Problem) in
      try secret.create(at: path, holding: key.secretBytes, files: files)
    }
    return publicHeader + key.publicKey.bytes.hexadecimal
  }

  /// Reads a private key. Refuses a file that others than its owner may read.
  public static func read(_ path: String, files: FileSystem = FileSystem()) throws -> HybridKey {
    let bytes = try telling { () throws(SecretLineFile.Problem) in try secret.read(path, files: files) }
    guard let key = try? HybridKey(bytes) else { throw malformed }
    return key
  }

  /// Reads a public key.
  public static func readPublic(_ path: String, files: FileSystem = FileSystem()) throws -> HybridPublicKey {
    let file = try files.open(path, [.readOnly, .nonBlocking])
    guard try file.status().kind == .file, let bytes = try? file.contents(limit: 1024) else { throw malformed }
    let line = String(decoding: bytes, as: UTF8.self).split(separator: "\n").first.map(String.init) ?? ""
    guard line.hasPrefix(publicHeader), let raw = [UInt8](hexadecimal: line.dropFirst(publicHeader.count)),
      let key = try? HybridPublicKey(bytes: raw)
    else { throw malformed }
    return key
  }

  private static var malformed: ContainerError {
    ContainerError(.damaged, "the file holds no escrow key, or not the half that is needed")
  }

  private static func telling<Result>(_ body: () throws(SecretLineFile.Problem) -> Result) throws -> Result {
    do throws(SecretLineFile.Problem) {
      return try body()
    } catch {
      switch error {
      case .alreadyExists: throw ContainerError(.cannotCreate, "there is something at this place already")
      case .exposed:
        throw ContainerError(.refused, "others than its owner may read the private key's file; run chmod 600 on it")
      case .malformed: throw malformed
      case .system(let error): throw error
      }
    }
  }
}
