internal import CofferSystem

/// A file with one line: what it is, and a secret in hexadecimal digits. Only its owner may read it.
struct SecretLineFile {
  private let header: [UInt8]
  private let byteCount: Int
  private var lineLength: Int { header.count + 2 * byteCount + 1 }

  enum Problem: Error {
    case alreadyExists, malformed, exposed
    case system(SystemError)
  }

  init(header: String, byteCount: Int) {
    self.header = Array(header.utf8)
    self.byteCount = byteCount
  }

  /// Writes a new file; nothing that is at `path`, a symbolic link included, is replaced.
  func create(at path: String, holding secret: SecretBytes, files: FileSystem) throws(Problem) {
    let present = Result { () throws(SystemError) in try files.status(of: path) }
    switch present {
    case .success(nil): break
    case .success: throw .alreadyExists
    case .failure(let error): throw .system(error)
    }
    do throws(SystemError) {
      // Fails where something has taken the name since.
      let file = try files.open(path, [.writeOnly, .createNew], permissions: 0o600)
      do throws(SystemError) {
        try file.writeAll(line(for: secret))
        try file.sync()
      } catch {
        _ = try? files.unlink(path)
        throw error
      }
    } catch {
      throw .system(error)
    }
  }

  func read(_ path: String, files: FileSystem) throws(Problem) -> SecretBytes {
    do {
      let file = try files.open(path, [.readOnly, .nonBlocking])
      let status = try file.status()
      guard status.kind == .file, status.byteCount == UInt64(lineLength) else { throw Problem.malformed }
      guard status.permissions & 0o077 == 0 else { throw Problem.exposed }
      var count = 0
      let line = try SecretBytes(count: lineLength) { count = try file.readFully(into: $0) }
      guard count == lineLength, let secret = secret(in: line) else { throw Problem.malformed }
      return secret
    } catch let error as SystemError {
      throw .system(error)
    } catch let error as Problem {
      throw error
    } catch {
      throw .malformed
    }
  }

  private func line(for secret: SecretBytes) -> SecretBytes {
    let digits = Array("0123456789abcdef".utf8)
    return SecretBytes(count: lineLength) { line in
      line.copyBytes(from: header)
      secret.withUnsafeBytes { secret in
        for (index, byte) in secret.enumerated() {
          line[header.count + 2 * index] = digits[Int(byte >> 4)]
          line[header.count + 2 * index + 1] = digits[Int(byte & 15)]
        }
      }
      line[lineLength - 1] = UInt8(ascii: "\n")
    }
  }

  private func secret(in line: SecretBytes) -> SecretBytes? {
    line.withUnsafeBytes { line in
      guard line.starts(with: header), line[lineLength - 1] == UInt8(ascii: "\n") else { return nil }
      var isValid = true
      let secret = SecretBytes(count: byteCount) { secret in
        for index in 0..<byteCount {
          let pair = (Self.digit(line[header.count + 2 * index]), Self.digit(line[header.count + 2 * index + 1]))
          if let high = pair.0, let low = pair.1 { secret[index] = high << 4 | low } else { isValid = false }
        }
      }
      return isValid ? secret : nil
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
