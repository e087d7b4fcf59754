public import CofferCrypto
public import CofferSystem

/// A team's private key in a file: one line, `coffer-team-key-1 ` and the Ed25519 seed in 64 hexadecimal digits.
public enum TeamKeyFile {
  private static let header = Array("coffer-team-key-1 ".utf8)
  private static let seedSize = 32
  private static let size = header.count + 2 * seedSize + 1

  /// Makes a new key and writes it to `path`, readable by its owner only.
  ///
  /// - Returns: the public key, which approvals and manifests carry.
  /// - Throws: `AppError.alreadyExists` when anything is at `path`, a symbolic link included.
  public static func create(at path: String, files: FileSystem = FileSystem()) throws(AppError) -> VerifyingKey {
    guard try AppError.catching({ () throws(SystemError) in try files.status(of: path) }) == nil else {
      throw .alreadyExists
    }
    let key = SigningKey()
    try AppError.catching { () throws(SystemError) in
      // Fails where something has taken the name since.
      let file = try files.open(path, [.writeOnly, .createNew], permissions: 0o600)
      do throws(SystemError) {
        try file.writeAll(line(for: key))
        try file.sync()
      } catch {
        _ = try? files.unlink(path)
        throw error
      }
    }
    return key.verifyingKey
  }

  /// Reads a key.
  ///
  /// - Throws: `AppError.exposedKey` when anybody but the owner may read the file, and `AppError.malformedKey` when it
  ///   holds anything else.
  public static func read(_ path: String, files: FileSystem = FileSystem()) throws(AppError) -> SigningKey {
    do {
      let file = try files.open(path, [.readOnly, .nonBlocking])
      let status = try file.status()
      guard status.kind == .file, status.byteCount == UInt64(size) else { throw AppError.malformedKey }
      guard status.permissions & 0o077 == 0 else { throw AppError.exposedKey }
      var count = 0
      let line = try SecretBytes(count: size) { count = try file.readFully(into: $0) }
      guard count == size, let key = key(in: line) else { throw AppError.malformedKey }
      return key
    } catch let error as SystemError {
      throw .system(error)
    } catch let error as AppError {
      throw error
    } catch {
      throw .malformedKey
    }
  }

  private static func line(for key: SigningKey) -> SecretBytes {
    let digits = Array("0123456789abcdef".utf8)
    return SecretBytes(count: size) { line in
      line.copyBytes(from: header)
      key.seed.withUnsafeBytes { seed in
        for (index, byte) in seed.enumerated() {
          line[header.count + 2 * index] = digits[Int(byte >> 4)]
          line[header.count + 2 * index + 1] = digits[Int(byte & 15)]
        }
      }
      line[size - 1] = UInt8(ascii: "\n")
    }
  }

  private static func key(in line: SecretBytes) -> SigningKey? {
    line.withUnsafeBytes { line in
      guard line.starts(with: header), line[size - 1] == UInt8(ascii: "\n") else { return nil }
      var isValid = true
      let seed = SecretBytes(count: seedSize) { seed in
        for index in 0..<seedSize {
          let pair = (digit(line[header.count + 2 * index]), digit(line[header.count + 2 * index + 1]))
          if let high = pair.0, let low = pair.1 { seed[index] = high << 4 | low } else { isValid = false }
        }
      }
      return isValid ? try? SigningKey(seed: seed) : nil
    }
  }

  private static func digit(_ character: UInt8) -> UInt8? {
    switch character {
    case UInt8(ascii: "0")...UInt8(ascii: "9"): character - UInt8(ascii: "0")
    case UInt8(ascii: "a")...UInt8(ascii: "f"): character - UInt8(ascii: "a") + 10
    default: nil
    }
  }
}
