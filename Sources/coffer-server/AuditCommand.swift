internal import ArgumentParser
internal import CofferServer
internal import CofferSystem
internal import Foundation

/// `coffer-server audit`.
struct AuditCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "audit", abstract: "A company's audit.", subcommands: [Verify.self])

  struct Verify: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "Checks an exported audit, without a server and without its data.",
      discussion: """
        Names the first entry that was altered, removed or reordered, and prints the number of entries when there is \
        none. That the keys in the file are the company's, its root key's fingerprint tells: give the one that you know.

        Example:
          coffer-server audit verify audit.jsonl --root-fingerprint 5f0c…
        """)

    @Argument(help: "The export; - is standard input.") var file: String
    @Option(help: "SHA-256 of the company's root key, in hexadecimal.") var rootFingerprint: String?
    @Option(
      help: "An entry's number and hash that a device or another witness kept, as NUMBER:HASH. May be repeated.")
    var witness: [Witness] = []
    @Flag(help: "Print a JSON object instead of one value.") var json = false

    func run() async throws {
      try await Failure.reporting {
        let seen = Dictionary(witness.map { ($0.number, $0.hash) }, uniquingKeysWith: { first, _ in first })
        var verification = AuditVerification(witnessed: seen)
        try Self.lines(of: file) { try verification.take($0) }
        let result = try verification.finish()
        if let rootFingerprint, rootFingerprint.lowercased() != result.rootFingerprint {
          throw ServerError.auditDamaged("the audit is not this company's: its root key is another one")
        }
        try StandardOutput.write(line: json ? try Self.encoded(result) : "\(result.entries)")
      }
    }

    private static func encoded(_ result: AuditVerification.Result) throws -> String {
      let encoder = JSONEncoder()
      encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
      return String(decoding: try encoder.encode(result), as: UTF8.self)
    }

    /// Reads in portions: an audit may be larger than memory.
    private static func lines(of path: String, _ take: ([UInt8]) throws -> Void) throws {
      let file = path == "-" ? OwnedDescriptor.standardInput : try FileSystem().open(path, .readOnly)
      var line: [UInt8] = []
      var portion = [UInt8](repeating: 0, count: 64 << 10)
      while true {
        let count = try portion.withUnsafeMutableBytes { try file.read(into: $0) }
        if count == 0 { break }
        for byte in portion[..<count] {
          if byte == 10 {
            try take(line)
            line.removeAll(keepingCapacity: true)
          } else {
            guard line.count < AuditVerification.maximumLine else {
              throw ServerError.auditDamaged("the audit is not intact: a line is longer than any that was exported")
            }
            line.append(byte)
          }
        }
      }
      if !line.isEmpty { try take(line) }
    }
  }
}

/// An entry that somebody has seen.
struct Witness: ExpressibleByArgument {
  let number: Int64
  let hash: String

  init?(argument: String) {
    let parts = argument.split(separator: ":", omittingEmptySubsequences: false)
    guard parts.count == 2, let number = Int64(parts[0]), number > 0, parts[1].utf8.count == 64 else { return nil }
    self.number = number
    hash = parts[1].lowercased()
  }
}
