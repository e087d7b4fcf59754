public import CofferCrypto

/// What a signed document is for. Each has a `typ` of its own, so that none can be passed off as another.
public enum DocumentType: String, CaseIterable, Hashable, Sendable {
  case policy = "coffer-policy+jws"
  case keyset = "coffer-keyset+jws"
  case status = "coffer-status+jws"
  /// A device's assertion of who it is (RFC 7523).
  case assertion = "JWT"
  /// An order to one device, and the device's answer.
  case command = "coffer-command+jws"
  case receipt = "coffer-receipt+jws"
  /// What the root key lets another key do.
  case delegation = "coffer-delegation+jws"
  /// How far a company's audit reaches.
  case checkpoint = "coffer-checkpoint+jws"

  var name: String {
    switch self {
    case .policy: "policy"
    case .keyset: "set of keys"
    case .status: "status"
    case .assertion: "assertion"
    case .command: "command"
    case .receipt: "receipt"
    case .delegation: "delegation"
    case .checkpoint: "audit checkpoint"
    }
  }
}

/// A JSON Web Signature in the compact form (RFC 7515) with Ed25519 (RFC 8037) whose signature is valid.
///
/// The header is not parsed but compared: it is exactly `{"alg":"EdDSA","kid":"…","typ":"…"}`. So there is no other
/// algorithm, no `none`, no critical extension and no embedded key to be talked into. There is no value of this type
/// whose signature was not made or verified, and so no way to a payload that nobody vouches for.
public struct SignedDocument: Hashable, Sendable {
  /// Checked before anything is read, in bytes.
  public static let maximumSize = 4 << 20

  /// The exact text that was signed or received.
  public let text: String
  public let type: DocumentType
  public let keyID: String
  public let payload: [UInt8]

  /// Signs `payload`. Throws ``PolicyRefusal/oversize`` when the document would be larger than a reader takes.
  public init(signing payload: [UInt8], as type: DocumentType, with key: SigningKey) throws(PolicyRefusal) {
    guard payload.count <= Self.maximumSize else { throw .oversize }
    let keyID = key.verifyingKey.keyID
    let input = Base64URL.encode(Self.header(type, keyID)) + "." + Base64URL.encode(payload)
    let text = input + "." + Base64URL.encode(key.signature(for: Array(input.utf8)))
    guard text.utf8.count <= Self.maximumSize else { throw .oversize }
    self.text = text
    self.type = type
    self.keyID = keyID
    self.payload = payload
  }

  /// Reads a document and verifies it with the key that `key` returns for its key id.
  ///
  /// Throws ``PolicyRefusal``: `oversize`, `malformed`, `unexpectedHeader`, `unknownKey` or `notAuthentic`.
  public init(
    verifying text: String, as type: DocumentType, key: (_ keyID: String) -> VerifyingKey?
  ) throws(PolicyRefusal) {
    let parts = try Parts(text, type)
    guard let verifyingKey = key(parts.keyID) else { throw .unknownKey(type) }
    guard verifyingKey.isValid(parts.signature, for: parts.signedBytes) else { throw .notAuthentic(type) }
    guard let payload = Base64URL.decode(parts.payload) else { throw .malformed(type.name) }
    self.text = text
    self.type = type
    self.keyID = parts.keyID
    self.payload = payload
  }

  /// The key id that a document claims, before anything is verified: good for finding the key, and for nothing else.
  public static func claimedKeyID(_ text: String, as type: DocumentType) throws(PolicyRefusal) -> String {
    try Parts(text, type).keyID
  }

  /// What a document claims, before anything is verified: good for finding who is to verify it, and for nothing else.
  static func claims<Claims: Codable>(
    _ type: Claims.Type, _ text: String, as documentType: DocumentType
  ) throws(PolicyRefusal) -> Claims {
    guard let payload = Base64URL.decode(try Parts(text, documentType).payload) else {
      throw .malformed(documentType.name)
    }
    return try StrictJSON.decode(type, from: payload, documentType.name)
  }

  /// SHA-256 of the text, in lower-case hexadecimal.
  public var digest: String { hexadecimal(Digest.sha256(text.utf8)) }

  fileprivate static func header(_ type: DocumentType, _ keyID: String) -> [UInt8] {
    Array(#"{"alg":"EdDSA","kid":"\#(keyID)","typ":"\#(type.rawValue)"}"#.utf8)
  }
}

/// The three parts of a compact document, taken apart and not yet verified.
private struct Parts {
  let keyID: String
  let payload: ArraySlice<UInt8>
  let signature: [UInt8]
  let signedBytes: [UInt8]

  init(_ text: String, _ type: DocumentType) throws(PolicyRefusal) {
    guard text.utf8.count <= SignedDocument.maximumSize else { throw .oversize }
    let bytes = Array(text.utf8)
    let parts = bytes.split(separator: UInt8(ascii: "."), maxSplits: 3, omittingEmptySubsequences: false)
    guard parts.count == 3 else { throw .malformed(type.name) }
    guard parts[0].count <= 256, let header = Base64URL.decode(parts[0]) else { throw .unexpectedHeader(type) }
    // The one header that is accepted differs in its key id only, which stands at a fixed place.
    let idStart = #"{"alg":"EdDSA","kid":""#.utf8.count
    guard header.count > idStart + 32 else { throw .unexpectedHeader(type) }
    let id = header[idStart..<idStart + 32]
    guard id.allSatisfy({ (48...57).contains($0) || (97...102).contains($0) }) else { throw .unexpectedHeader(type) }
    keyID = String(decoding: id, as: UTF8.self)
    guard header == SignedDocument.header(type, keyID) else { throw .unexpectedHeader(type) }
    guard parts[2].count == 86, let signature = Base64URL.decode(parts[2]) else { throw .malformed(type.name) }
    self.signature = signature
    payload = parts[1]
    signedBytes = Array(bytes[..<parts[1].endIndex])
  }
}
