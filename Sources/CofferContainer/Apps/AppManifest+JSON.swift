internal import CofferCrypto
internal import CofferPolicy
internal import CofferSystem
internal import Foundation

/// A manifest as a file: a JSON object (RFC 8259).
///
/// ```json
/// { "bundleId": "com.acme.editor", "teamId": "ACME1", "name": "Acme Editor", "version": "2.1",
///   "executable": "bin/editor", "documentTypes": ["docx", "pdf"],
///   "executableDigest": "<64 hexadecimal digits>", "teamKey": "<base64url>", "signature": "<base64url>" }
/// ```
/// The last three are there together or not at all. A member that is not listed is refused: it would be one that the
/// signature does not cover.
extension AppManifest {
  /// Bytes of a manifest at most.
  public static let byteLimit = 64 << 10

  /// Throws `AppError.malformedManifest` unless `json` is a manifest; it may be one that is not signed.
  public init(json: [UInt8]) throws(AppError) {
    guard json.count <= Self.byteLimit else { throw .malformedManifest("larger than \(Self.byteLimit) bytes") }
    let document: Document
    do {
      document = try JSONDecoder().decode(Document.self, from: Data(json))
    } catch {
      throw .malformedManifest(Self.place(of: error))
    }
    try self.init(
      identity: AppIdentity(bundleId: document.bundleId, teamId: document.teamId), name: document.name,
      version: document.version, executable: document.executable, documentTypes: document.documentTypes,
      seal: try document.seal())
  }

  /// The manifest as a file: members in the order of their names, ends with a newline.
  public var json: [UInt8] {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
    do {
      return Array(try encoder.encode(Document(self))) + Array("\n".utf8)
    } catch {
      fatalError("a manifest has no value that JSON lacks")
    }
  }

  /// Which member is wrong. What stands there is not repeated.
  private static func place(of error: any Error) -> String {
    switch error as? DecodingError {
    case .keyNotFound(let key, _): "\(key.stringValue) is missing"
    case .typeMismatch(_, let context), .valueNotFound(_, let context), .dataCorrupted(let context):
      context.codingPath.first.map(\.stringValue) ?? "not a JSON object with the members of a manifest"
    default: "not a JSON object with the members of a manifest"
    }
  }

  private struct Document: Codable {
    let bundleId: String
    let teamId: String
    let name: String
    let version: String
    let executable: String
    let documentTypes: [String]
    let executableDigest: String?
    let teamKey: VerifyingKey?
    let signature: String?

    enum CodingKeys: String, CodingKey, CaseIterable {
      case bundleId, teamId, name, version, executable, documentTypes, executableDigest, teamKey, signature
    }

    private struct AnyKey: CodingKey {
      let stringValue: String
      let intValue: Int? = nil
      init(stringValue: String) { self.stringValue = stringValue }
      init?(intValue: Int) { nil }
    }

    init(_ manifest: AppManifest) {
      bundleId = manifest.identity.bundleId
      teamId = manifest.identity.teamId
      name = manifest.name
      version = manifest.version
      executable = manifest.executable
      documentTypes = manifest.documentTypes
      executableDigest = manifest.seal?.executableDigest.hexadecimal
      teamKey = manifest.seal?.teamKey
      signature = manifest.seal.map { Base64URL.encode($0.signature) }
    }

    init(from decoder: any Decoder) throws {
      let known = Set(CodingKeys.allCases.map(\.stringValue))
      guard try decoder.container(keyedBy: AnyKey.self).allKeys.allSatisfy({ known.contains($0.stringValue) }) else {
        throw DecodingError.dataCorrupted(.init(codingPath: [], debugDescription: "a member that is not known"))
      }
      let container = try decoder.container(keyedBy: CodingKeys.self)
      bundleId = try container.decode(String.self, forKey: .bundleId)
      teamId = try container.decode(String.self, forKey: .teamId)
      name = try container.decode(String.self, forKey: .name)
      version = try container.decode(String.self, forKey: .version)
      executable = try container.decode(String.self, forKey: .executable)
      documentTypes = try container.decode([String].self, forKey: .documentTypes)
      executableDigest = try container.decodeIfPresent(String.self, forKey: .executableDigest)
      teamKey = try container.decodeIfPresent(VerifyingKey.self, forKey: .teamKey)
      signature = try container.decodeIfPresent(String.self, forKey: .signature)
    }

    func seal() throws(AppError) -> Seal? {
      if executableDigest == nil, teamKey == nil, signature == nil { return nil }
      guard let teamKey else { throw .malformedManifest("teamKey") }
      guard let digest = executableDigest.flatMap({ [UInt8](hexadecimal: $0) }) else {
        throw .malformedManifest("executableDigest")
      }
      guard let bytes = signature.flatMap({ Base64URL.decode($0) }) else { throw .malformedManifest("signature") }
      return Seal(executableDigest: digest, teamKey: teamKey, signature: bytes)
    }
  }
}
