import CofferContainer
import CofferCrypto
import CofferPolicy
import CofferSystem
import Foundation
import Testing

@Suite("An app's manifest")
struct AppManifestTests {
  private static let plain: [String: any Sendable] = [
    "bundleId": "com.acme.editor", "teamId": "ACME1", "name": "Acme Editor", "version": "2.1",
    "executable": "bin/editor", "documentTypes": ["docx", "pdf"],
  ]

  private func json(_ members: [String: Any]) throws -> [UInt8] {
    Array(try JSONSerialization.data(withJSONObject: members))
  }

  private func signed(by key: SigningKey = SigningKey()) throws -> AppManifest {
    try AppManifest(json: json(Self.plain)).signed(by: key, executableDigest: Digest.sha256([1]))
  }

  @Test func `is read and written`() throws {
    let manifest = try AppManifest(json: json(Self.plain))
    #expect(manifest.identity == AppIdentity(bundleId: "com.acme.editor", teamId: "ACME1"))
    #expect(manifest.name == "Acme Editor" && manifest.version == "2.1" && manifest.executable == "bin/editor")
    #expect(manifest.documentTypes == ["docx", "pdf"] && manifest.seal == nil)
    #expect(try AppManifest(json: manifest.json) == manifest)
    let signed = try signed()
    #expect(try AppManifest(json: signed.json) == signed)
  }

  @Test(arguments: Array(plain.keys).sorted()) func `is refused without a member, or with one of another kind`(
    member: String
  ) throws {
    var members: [String: Any] = Self.plain
    members[member] = nil
    #expect(throws: AppError.malformedManifest("\(member) is missing")) { try AppManifest(json: json(members)) }
    for value: Any in [1, NSNull(), ["a": 1]] {
      members[member] = value
      #expect(throws: AppError.malformedManifest(member)) { try AppManifest(json: json(members)) }
    }
  }

  struct Bad: CustomTestStringConvertible {
    let member: String
    let value: any Sendable
    var testDescription: String { "\(member): \("\(value)".prefix(40))" }
  }

  static let bad: [Bad] =
    ["", "a b", "a/b", "ü", "a\u{0}", String(repeating: "a", count: 156)].flatMap {
      [Bad(member: "bundleId", value: $0), Bad(member: "teamId", value: $0)]
    }
    + ["", "a\nb", "a\u{202E}b", String(repeating: "a", count: 201)].map { Bad(member: "name", value: $0) }
    + ["", "1\t2", String(repeating: "1", count: 65)].map { Bad(member: "version", value: $0) }
    + [
      "", "/bin/sh", "..", ".", "../editor", "bin/../../editor", "bin/./editor", "bin//editor", "bin/", "/", "a\u{0}b",
      String(repeating: "a", count: 256), String(repeating: "a/", count: 600) + "a",
    ].map { Bad(member: "executable", value: $0) }
    + [[".pdf"], ["PDF"], [""], ["pdf", "pdf"], ["a b"], (0..<257).map { "a\($0)" }].map {
      Bad(member: "documentTypes", value: $0)
    }

  @Test(arguments: bad) func `is refused with a value of another form`(bad: Bad) throws {
    var members: [String: Any] = Self.plain
    members[bad.member] = bad.value
    let error = try #require(throws: AppError.self) { try AppManifest(json: json(members)) }
    guard case .malformedManifest(let what) = error else {
      Issue.record("\(error)")
      return
    }
    #expect(what.contains(bad.member))
    // What stands there is not repeated in the message.
    if let text = bad.value as? String, text.count > 3 { #expect(!error.description.contains(text)) }
  }

  @Test(arguments: ["", "{", "[]", "null", "\"text\"", "{}", "\u{FEFF}", String(repeating: "[", count: 10_000)])
  func `is refused when it is no object`(text: String) {
    #expect(throws: AppError.self) { try AppManifest(json: Array(text.utf8)) }
  }

  @Test func `is refused when it is large, or has a member that nobody signs`() throws {
    var members: [String: Any] = Self.plain
    members["entitlements"] = ["network"]
    #expect(throws: AppError.self) { try AppManifest(json: json(members)) }
    let padded = try json(Self.plain) + [UInt8](repeating: 0x20, count: AppManifest.byteLimit)
    #expect(throws: AppError.malformedManifest("larger than 65536 bytes")) { try AppManifest(json: padded) }
  }

  @Test(arguments: ["executableDigest", "teamKey", "signature"]) func `is refused with a part of a signature`(
    member: String
  ) throws {
    let object = try JSONSerialization.jsonObject(with: Data(signed().json))
    var members = try #require(object as? [String: Any])
    #expect(throws: Never.self) { try AppManifest(json: json(members)) }
    for value in ["", "zz", "00"] {
      members[member] = value
      #expect(throws: AppError.malformedManifest(member)) { try AppManifest(json: json(members)) }
    }
    members[member] = nil
    #expect(throws: AppError.malformedManifest(member)) { try AppManifest(json: json(members)) }
  }

  @Test func `is verified once it is signed`() throws {
    let key = SigningKey()
    let verified = try signed(by: key).verified()
    #expect(verified.teamKey == key.verifyingKey && verified.executableDigest == Digest.sha256([1]))
    #expect(throws: AppError.unsigned) { try AppManifest(json: json(Self.plain)).verified() }
  }

  @Test func `signed again has the new key`() throws {
    let key = SigningKey()
    #expect(try signed().signed(by: key, executableDigest: Digest.sha256([2])).verified().teamKey == key.verifyingKey)
  }

  @Test func `is not verified once any member was altered`() throws {
    let other = try signed(by: SigningKey())
    let changes: [(String, Any)] = [
      ("bundleId", "com.acme.editor2"), ("teamId", "ACME2"), ("name", "Acme"), ("version", "2.2"),
      ("executable", "bin/other"), ("documentTypes", ["pdf", "docx"]), ("documentTypes", ["docx"]),
      ("documentTypes", ["docx", "pdf", "txt"]), ("documentTypes", ["docxpdf"]),
      ("executableDigest", Digest.sha256([2]).hexadecimal),
      ("teamKey", try #require(other.seal?.teamKey.text)),
      ("signature", Base64URL.encode(try #require(other.seal?.signature))),
    ]
    let original = try signed()
    #expect(throws: Never.self) { try original.verified() }
    for (member, value) in changes {
      let object = try JSONSerialization.jsonObject(with: Data(original.json))
      var members = try #require(object as? [String: Any])
      #expect(members[member] != nil)
      members[member] = value
      #expect(throws: AppError.notAuthentic, "\(member)") { try AppManifest(json: json(members)).verified() }
    }
  }

  /// Moving a letter from one member to the next must change what is signed.
  @Test func `has one meaning for each signature`() throws {
    let key = SigningKey()
    func signature(_ bundleId: String, _ teamId: String, _ types: [String]) throws -> [UInt8] {
      let identity = AppIdentity(bundleId: bundleId, teamId: teamId)
      let manifest = try AppManifest(
        identity: identity, name: "n", version: "1", executable: "e", documentTypes: types)
      let signed = try manifest.signed(by: key, executableDigest: Digest.sha256([1]))
      return try #require(signed.seal?.signature)
    }
    let all = [
      try signature("ab", "c", ["d", "e"]), try signature("a", "bc", ["d", "e"]), try signature("ab", "c", ["de"]),
      try signature("ab", "c", ["d"]), try signature("ab", "c", []),
    ]
    #expect(Set(all).count == all.count)
  }

  /// A second signer, written from the documentation alone.
  @Test func `signs the bytes that are documented`() throws {
    let manifest = try signed()
    let seal = try #require(manifest.seal)
    func string(_ bytes: some Sequence<UInt8>) -> [UInt8] {
      let bytes = Array(bytes)
      return [0, 0, UInt8(bytes.count >> 8), UInt8(bytes.count & 255)] + bytes
    }
    var message: [UInt8] = []
    for text in ["coffer app manifest 1", "com.acme.editor", "ACME1", "Acme Editor", "2.1", "bin/editor"] {
      message += string(text.utf8)
    }
    message += [0, 0, 0, 2] + string("docx".utf8) + string("pdf".utf8)
    message += string(Digest.sha256([1])) + string(seal.teamKey.bytes)
    #expect(seal.teamKey.isValid(seal.signature, for: message))
  }
}
