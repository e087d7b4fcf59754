import CofferCrypto
import CofferPolicy
import Testing

struct SignedDocumentTests {
  let company = Company()

  func keyset() throws -> Keyset {
    try SignedKeyset(verifying: company.keyset(), root: company.root.verifyingKey).keyset
  }

  @Test func `a bundle is read as it was issued`() throws {
    let policy = company.policy(9) { policy in
      policy = DecisionTests.policy()
      policy.rules = [
        Rule(
          id: "all", effect: .forbid, actions: [.print], apps: [DecisionTests.editor], extensions: ["pdf"],
          classifications: ["secret"], groups: ["sales"],
          conditions: [
            Condition(.deviceUnlocked, negated: true), Condition(.policyAgeAtMost(60)),
            Condition(.osVersion(VersionRange(atLeast: "17", below: "19.1"))),
            Condition(.appVersion(VersionRange(below: "2"))), Condition(.protectionAtLeast(.completeUnlessOpen)),
            Condition(.group("sales")),
            Condition(.timeWindow(TimeWindow(days: [1, 5], start: 0, end: 1440, offset: -60))),
            Condition(
              .unknown(
                .object([
                  "kind": .string("new"), "not": .boolean(true), "deep": .array([.null, .number(1.5), .integer(7)]),
                ]))),
          ])
      ]
      policy.classifications = [Classification(id: "secret", name: "Streng geheim — nur intern")]
      policy.fileTypes = [FileType(extension: "dwg", mediaTypes: ["image/vnd.dwg"])]
    }
    let text = try PolicyBundle(issuing: policy, key: company.key).document.text
    let bundle = try PolicyBundle(verifying: text, keyset: try keyset())
    #expect(bundle.policy == policy)
    #expect(bundle.document.text == text)
    #expect(bundle.digest.count == 64)
  }

  @Test func `every flipped bit is refused`() throws {
    let bytes = Array(try company.bundle(1).utf8)
    let keyset = try keyset()
    for index in bytes.indices {
      for bit in 0..<7 {
        var altered = bytes
        altered[index] ^= 1 << UInt8(bit)
        #expect(throws: PolicyRefusal.self, "byte \(index), bit \(bit)") {
          try PolicyBundle(verifying: String(decoding: altered, as: UTF8.self), keyset: keyset)
        }
      }
    }
  }

  @Test func `every cut and every addition is refused`() throws {
    let text = try company.bundle(1)
    let keyset = try keyset()
    for count in 0..<text.count {
      #expect(throws: PolicyRefusal.self) { try PolicyBundle(verifying: String(text.prefix(count)), keyset: keyset) }
    }
    for addition in ["=", "A", ".", "\n", " ", ".AAAA"] {
      #expect(throws: PolicyRefusal.self) { try PolicyBundle(verifying: text + addition, keyset: keyset) }
      #expect(throws: PolicyRefusal.self) { try PolicyBundle(verifying: addition + text, keyset: keyset) }
    }
  }

  /// A document with any header, properly signed over it: only the header is wrong.
  func forged(_ header: String, signer: SigningKey? = nil) throws -> String {
    let payload = try company.bundle(1).split(separator: ".")[1]
    let input = Base64URL.encode(header.utf8) + "." + payload
    return input + "." + Base64URL.encode((signer ?? company.key).signature(for: Array(input.utf8)))
  }

  @Test func `the header that Coffer signs is accepted when made by hand`() throws {
    let kid = company.key.verifyingKey.keyID
    let text = try forged(#"{"alg":"EdDSA","kid":"\#(kid)","typ":"coffer-policy+jws"}"#)
    #expect(try PolicyBundle(verifying: text, keyset: keyset()).policy.revision == 1)
  }

  static let headers = [
    #"{"alg":"none","kid":"KID","typ":"coffer-policy+jws"}"#,
    #"{"alg":"HS256","kid":"KID","typ":"coffer-policy+jws"}"#,
    #"{"alg":"Ed25519","kid":"KID","typ":"coffer-policy+jws"}"#,
    #"{"alg":"eddsa","kid":"KID","typ":"coffer-policy+jws"}"#,
    #"{"alg":"EdDSA","kid":"KID","typ":"coffer-status+jws"}"#,
    #"{"alg":"EdDSA","kid":"KID","typ":"coffer-keyset+jws"}"#,
    #"{"alg":"EdDSA","kid":"KID","typ":"JWT"}"#,
    #"{"alg":"EdDSA","kid":"KID"}"#,
    #"{"alg":"EdDSA","typ":"coffer-policy+jws"}"#,
    #"{"alg":"EdDSA","kid":"KID","typ":"coffer-policy+jws","crit":["b64"],"b64":false}"#,
    #"{"alg":"EdDSA","jwk":{},"kid":"KID","typ":"coffer-policy+jws"}"#,
    #"{"alg":"EdDSA","kid":"KID","typ":"coffer-policy+jws","typ":"coffer-policy+jws"}"#,
    #"{"kid":"KID","alg":"EdDSA","typ":"coffer-policy+jws"}"#,
    #"{"alg":"EdDSA", "kid":"KID","typ":"coffer-policy+jws"}"#,
    #"{"alg":"EdDSA","kid":"KID","typ":"coffer-policy+jws"} "#,
    #"{"alg":"EdDSA","kid":"../../KID","typ":"coffer-policy+jws"}"#,
    "", "{}", "null",
  ]

  @Test(arguments: headers)
  func `any other header is refused, though its signature is valid`(header: String) throws {
    let text = try forged(header.replacing("KID", with: company.key.verifyingKey.keyID))
    #expect(throws: PolicyRefusal.unexpectedHeader(.policy)) { try PolicyBundle(verifying: text, keyset: keyset()) }
  }

  @Test func `upper-case key ids, another key's id and unknown keys are refused`() throws {
    let stranger = SigningKey()
    let kid = company.key.verifyingKey.keyID
    func header(_ kid: String) -> String { #"{"alg":"EdDSA","kid":"\#(kid)","typ":"coffer-policy+jws"}"# }
    #expect(throws: PolicyRefusal.unexpectedHeader(.policy)) {
      try PolicyBundle(verifying: forged(header(String(repeating: "A", count: 32))), keyset: keyset())
    }
    #expect(throws: PolicyRefusal.unknownKey(.policy)) {
      try PolicyBundle(verifying: company.bundle(1, key: stranger), keyset: keyset())
    }
    #expect(throws: PolicyRefusal.notAuthentic(.policy)) {
      try PolicyBundle(verifying: forged(header(kid), signer: stranger), keyset: keyset())
    }
    // Ed25519 signatures made with the root key are not the company's policy either.
    #expect(throws: PolicyRefusal.unknownKey(.policy)) {
      try PolicyBundle(verifying: company.bundle(1, key: company.root), keyset: keyset())
    }
  }

  @Test func `a document without signature, or with an empty one, is refused`() throws {
    let parts = try company.bundle(1).split(separator: ".")
    for text in ["\(parts[0]).\(parts[1])", "\(parts[0]).\(parts[1]).", "\(parts[0])..\(parts[2])", "..", ""] {
      #expect(throws: PolicyRefusal.self) { try PolicyBundle(verifying: text, keyset: keyset()) }
    }
  }

  @Test func `an oversized document is refused before it is read`() throws {
    let text = String(repeating: "A", count: SignedDocument.maximumSize + 1)
    #expect(throws: PolicyRefusal.oversize) { try PolicyBundle(verifying: text, keyset: keyset()) }
    #expect(throws: PolicyRefusal.oversize) {
      try SignedDocument(
        signing: [UInt8](repeating: 0, count: SignedDocument.maximumSize), as: .policy, with: company.key)
    }
  }

  /// Bytes as payload, properly signed.
  func signed(_ payload: String, as type: DocumentType = .policy) throws -> String {
    try SignedDocument(signing: Array(payload.utf8), as: type, with: company.key).text
  }

  @Test func `a payload with an unknown member, a missing one or another schema is refused`() throws {
    let document = try PolicyBundle(verifying: company.bundle(1), keyset: keyset()).document
    let json = String(decoding: document.payload, as: UTF8.self)
    #expect(try PolicyBundle(verifying: signed(json), keyset: keyset()).policy.revision == 1)
    let spoiled = [
      json.replacing(#""schema":1"#, with: #""schema":1,"onlyOnMondays":true"#),
      json.replacing(#""rules":[]"#, with: #""rules":[{"id":"a","effect":"permit","conditions":[],"network":"home"}]"#),
      json.replacing(#""rules":[]"#, with: #""rules":[{"id":"a","effect":"maybe","conditions":[]}]"#),
      json.replacing(#""rules":[]"#, with: #""rules":[{"id":"a","effect":"permit","actions":null,"conditions":[]}]"#),
      json.replacing(#""rules":[]"#, with: #""rules":null"#),
      json.replacing(#""commands":[]"#, with: #""commands":[{"kind":"wipe"}]"#),
      json.replacing(#""commands":[]"#, with: #""commands":["wipe"]"#),
      json.replacing(#""commands":[],"#, with: ""),
      json.replacing(#""revision":1"#, with: #""revision":1e99"#),
      json.replacing(#""revision":1"#, with: #""revision":"1""#),
      json.replacing(#""revision":1"#, with: #""revision":0"#), json + "x", "[]", "", "null",
    ]
    for text in spoiled {
      #expect(text != json)
      #expect(throws: PolicyRefusal.self, "\(text)") { try PolicyBundle(verifying: signed(text), keyset: keyset()) }
    }
    #expect(throws: PolicyRefusal.unsupportedSchema(2)) {
      try PolicyBundle(
        verifying: signed(json.replacing(#""schema":1"#, with: #""schema":2,"new":0"#)), keyset: keyset())
    }
  }

  @Test func `a payload nested without end is refused`() throws {
    let deep = String(repeating: "[", count: 100_000)
    #expect(throws: PolicyRefusal.self) { try PolicyBundle(verifying: signed(deep), keyset: keyset()) }
  }

  @Test func `a bundle of another company or epoch is refused, though the key is known`() throws {
    let keyset = try keyset()
    #expect(throws: PolicyRefusal.otherTenant) {
      try PolicyBundle(verifying: company.bundle(1) { $0.tenant = "globex" }, keyset: keyset)
    }
    #expect(throws: PolicyRefusal.otherEpoch) {
      try PolicyBundle(verifying: company.bundle(1) { $0.keyEpoch = 2 }, keyset: keyset)
    }
  }

  @Test func `a keyset needs the root and consistent entries`() throws {
    let root = company.root.verifyingKey
    #expect(throws: PolicyRefusal.unknownKey(.keyset)) {
      try SignedKeyset(verifying: company.keyset(root: SigningKey()), root: root)
    }
    #expect(throws: PolicyRefusal.unknownKey(.keyset)) {
      try SignedKeyset(verifying: company.keyset(root: company.key), root: root)
    }
    #expect(throws: PolicyRefusal.malformed("set of keys")) { try company.keyset(keys: []) }
    #expect(throws: PolicyRefusal.malformed("set of keys")) { try company.keyset(notAfter: 0) }
    let json = String(
      decoding: try SignedKeyset(verifying: company.keyset(), root: root).document.payload, as: UTF8.self)
    let swapped = json.replacing(company.key.verifyingKey.keyID, with: root.keyID)
    let text = try SignedDocument(signing: Array(swapped.utf8), as: .keyset, with: company.root).text
    #expect(throws: PolicyRefusal.malformed("set of keys")) { try SignedKeyset(verifying: text, root: root) }
  }

  @Test func `no document passes for one of another type`() throws {
    let status = try company.status(of: company.enrol(), nonce: Base64URL.encode([UInt8](repeating: 1, count: 32)))
    let keyset = try keyset()
    #expect(throws: PolicyRefusal.unexpectedHeader(.policy)) { try PolicyBundle(verifying: status, keyset: keyset) }
    #expect(throws: PolicyRefusal.unexpectedHeader(.status)) {
      try SignedStatus(verifying: company.bundle(1), keyset: keyset)
    }
    #expect(throws: PolicyRefusal.unexpectedHeader(.keyset)) {
      try SignedKeyset(verifying: company.bundle(1), root: company.key.verifyingKey)
    }
  }
}
