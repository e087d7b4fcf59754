internal import CofferCrypto
internal import CofferPolicy
internal import CofferSystem
internal import Foundation

/// Checks an export without the server, line by line: each entry's hash over the one before, the numbers without a gap,
/// and the company's signature under the end.
///
/// Whoever holds the signing key could sign another history: the root key's fingerprint, as enrolment codes and devices
/// have it, and checkpoints that devices were witnesses of say whether it is the same.
public struct AuditVerification {
  /// What an intact export shows.
  public struct Result: Encodable, Hashable, Sendable {
    public let tenant: String
    /// SHA-256 of the root key, in lower-case hexadecimal.
    public let rootFingerprint: String
    public let entries: Int64
    /// The hash of the last entry.
    public let hash: String
    /// When the end was signed, in seconds since 1970.
    public let signedAt: Int64
  }

  /// No entry is longer.
  public static let maximumLine = 1 << 20

  private var header: AuditExport.Header?
  private var keyset: Keyset?
  private var root: VerifyingKey?
  private var number: Int64 = 0
  private var hash = AuditRecord.genesis
  private var checkpoint: AuditCheckpoint?
  /// The hashes of entries that others have seen, by number.
  private let witnessed: [Int64: String]

  /// - Parameter witnessed: hashes in lower-case hexadecimal that devices or others kept, by entry number.
  public init(witnessed: [Int64: String] = [:]) { self.witnessed = witnessed }

  /// Takes the next line, without its end. Throws `ServerError.auditDamaged`, which names the first entry that is not
  /// what was recorded.
  public mutating func take(_ line: [UInt8]) throws {
    guard header != nil else { return try takeHeader(line) }
    guard checkpoint == nil else { throw damaged("something stands behind the signed end") }
    if line.starts(with: AuditExport.entryStart) { return try takeEntry(line) }
    try takeFooter(line)
  }

  /// What was shown, at the end of the file.
  public func finish() throws -> Result {
    guard let header, let root else { throw damaged("the file is empty") }
    guard let checkpoint else {
      throw damaged("the signed end is missing: entries after \(number) may have been removed")
    }
    return Result(
      tenant: header.tenant, rootFingerprint: root.fingerprint.hexadecimal, entries: number, hash: hash.hexadecimal,
      signedAt: checkpoint.time)
  }

  private mutating func takeHeader(_ line: [UInt8]) throws {
    guard let header = try? JSONDecoder().decode(AuditExport.Header.self, from: Data(line)),
      header.format == AuditExport.format, header.version == 1, let root = VerifyingKey(text: header.rootKey)
    else { throw damaged("this is not an audit that coffer-server exported") }
    guard let keyset = try? SignedKeyset(verifying: header.keyset, root: root), keyset.keyset.tenant == header.tenant
    else { throw damaged("the keys at its beginning are not signed by the root key beside them") }
    (self.header, self.root, self.keyset) = (header, root, keyset.keyset)
  }

  private mutating func takeEntry(_ line: [UInt8]) throws {
    let expected = number + 1
    let tail = AuditExport.hashStart.count + 2 * Digest.byteCount + AuditExport.lineEnd.count
    let altered = damaged("entry \(expected) was altered")
    guard line.count > AuditExport.entryStart.count + tail,
      line.suffix(AuditExport.lineEnd.count) == AuditExport.lineEnd[...]
    else { throw altered }
    let end = line.count - tail
    let bytes = Array(line[AuditExport.entryStart.count..<end])
    let stated = Array(line[(end + AuditExport.hashStart.count)..<(line.count - AuditExport.lineEnd.count)])
    guard line[end..<end + AuditExport.hashStart.count] == AuditExport.hashStart[...],
      let entry = try? JSONDecoder().decode(AuditEntry.self, from: Data(bytes))
    else { throw altered }
    guard entry.number == expected else {
      throw damaged(
        entry.number > expected
          ? "entry \(expected) was removed, or stands in another place" : "entry \(entry.number) stands out of place")
    }
    let next = AuditRecord.hash(previous: hash, entry: bytes)
    guard Array(next.hexadecimal.utf8) == stated, entry.tenant == header?.tenant else { throw altered }
    if let seen = witnessed[expected], seen != next.hexadecimal {
      throw damaged("entry \(expected) or one before it is not what a witness has seen")
    }
    (number, hash) = (expected, next)
  }

  private mutating func takeFooter(_ line: [UInt8]) throws {
    guard let keyset, let footer = try? JSONDecoder().decode(AuditExport.Footer.self, from: Data(line)),
      let signed = try? SignedCheckpoint(verifying: footer.checkpoint, keyset: keyset)
    else { throw damaged("what stands behind entry \(number) is neither an entry nor the company's signed end") }
    guard signed.checkpoint.number == number else {
      throw damaged(
        signed.checkpoint.number > number
          ? "entry \(number + 1) and what follows was removed" : "entry \(signed.checkpoint.number + 1) was added")
    }
    guard signed.checkpoint.hash == hash.hexadecimal else {
      throw damaged("the entries were replaced: their chain is not the one that the company signed")
    }
    if let missing = witnessed.keys.filter({ $0 > number }).min() {
      throw damaged("entry \(missing), which a witness has seen, is missing")
    }
    checkpoint = signed.checkpoint
  }

  private func damaged(_ what: String) -> ServerError { .auditDamaged("the audit is not intact: \(what)") }
}
