import CofferCrypto
import CofferPolicy
import Foundation
import Testing

/// Which escrow key a device believes, what an order to clear a passcode is, and what the chain of decisions has of it.
struct EscrowKeyTests {
  let company = Company()
  let key = HybridKey().publicKey

  func delegation(
    use: Delegation.Use = .escrow, tenant: String = "acme", key: String? = nil, until notAfter: Int64? = nil,
    root: SigningKey? = nil
  ) throws -> String {
    let delegation = Delegation(
      tenant: tenant, use: use, key: key ?? Base64URL.encode(self.key.bytes), issuedAt: 7,
      notAfter: notAfter ?? company.now + 1_000)
    return try SignedDelegation(issuing: delegation, root: root ?? company.root).document.text
  }

  func asked(_ value: JSONValue?) throws -> Enrolment.EscrowKey? {
    let bundle = try company.bundle(5) { $0.settings.managed = value.map { ["escrow": $0] } }
    return try company.enrol(bundle: bundle).escrowKey()
  }

  @Test func `a key that the root delegated for escrow, and no other`() throws {
    #expect(try asked(nil) == nil)
    #expect(try asked(.boolean(false)) == nil)
    let found = try #require(try asked(.string(try delegation())))
    #expect(found.key == key && found.issuedAt == 7)
    // The company's own online key, which may be stolen, vouches for nothing.
    for text in [
      try delegation(root: company.key), try delegation(root: SigningKey()), try delegation(tenant: "other"),
      try delegation(use: .wipe, key: SigningKey().verifyingKey.text), try delegation(until: company.now - 1),
      try delegation(key: Base64URL.encode([UInt8](repeating: 0, count: 32))), "", "a.b.c",
    ] {
      #expect(throws: PolicyRefusal.self, "\(text)") { try asked(.string(text)) }
    }
    #expect(throws: PolicyRefusal.self) { try asked(.boolean(true)) }
    // What is no value of this setting asks for nothing, and is reported.
    for value in [JSONValue.integer(1), .null, .string(String(repeating: "a", count: 5_000))] {
      #expect(try asked(value) == nil)
      #expect(ManagedSettings(["escrow": value]).malformed == ["escrow"])
    }
    #expect(ManagedSettings.fault(in: ["escrow": .boolean(true)]) == nil)
    #expect(ManagedSettings.fault(in: ["escrow": .string(try delegation())])?.name == "escrow")
  }

  @Test func `an order carries a clearing where it clears a passcode, and nowhere else`() throws {
    func order(_ kind: DeviceCommand.Kind, _ clearing: String?) -> DeviceCommand {
      DeviceCommand(
        tenant: "acme", audience: "device-1", id: "o-1", kind: kind, issuedAt: 1, notAfter: 2, clearing: clearing)
    }
    let order1 = try SignedCommand(issuing: order(.clearPasscode, "AAAA"), key: company.key)
    #expect(DeviceCommand.statedClearing(in: order1.document.text) == "AAAA")
    // As a server of before signs it: the device answers that.
    _ = try SignedCommand(issuing: order(.clearPasscode, nil), key: company.key)
    for (kind, clearing) in [
      (.lock, "AAAA"), (.wipe, "AAAA"), (.clearPasscode, ""), (.clearPasscode, "A"), (.clearPasscode, "AA=="),
      (.clearPasscode, String(repeating: "A", count: DeviceCommand.maximumClearing + 4)),
    ] as [(DeviceCommand.Kind, String)] {
      #expect(throws: PolicyRefusal.malformed("command")) {
        try SignedCommand(issuing: order(kind, clearing), key: company.key)
      }
    }
    #expect(DeviceCommand.statedClearing(in: "a.b") == nil)
  }

  @Test func `a chain of before goes on with events, and neither passes for the other`() throws {
    let before =
      #"{"action":"saveCopy","actor":"owner","fileExtension":"txt","number":1,"previous":"\#(DecisionRecord.beginning)","#
      + #""reason":"ownerActionNotAllowed","revision":3,"rules":["settings:ownerActions"],"time":9}"#
    let decision = try #require(DecisionRecord(text: before))
    #expect(decision.event == nil && decision.action == .saveCopy)
    let event = DecisionRecord(
      .escrowKeyUsed, isByCompany: true, revision: 3, number: 2, previous: DecisionRecord.hash(of: before), time: 10)
    #expect(DecisionRecord(text: event.text) == event && event.actor == "company" && event.action == nil)
    var chain = DecisionChain(from: 1)
    chain.add(1, before)
    chain.add(2, event.text)
    chain.end(hash: DecisionRecord.hash(of: event.text))
    #expect(chain.broken == nil && chain.gaps.isEmpty && chain.count == 2)
    for text in [
      event.text.replacing(#","event":"escrowKeyUsed""#, with: ""),
      event.text.replacing(#"{"actor""#, with: #"{"action":"saveCopy","actor""#),
      before.replacing(#""action":"saveCopy","#, with: ""),
      before.replacing(#","reason":"ownerActionNotAllowed""#, with: ""),
      event.text.replacing("escrowKeyUsed", with: "somethingElse"),
    ] {
      #expect(text != before && text != event.text)
      #expect(DecisionRecord(text: text) == nil, "\(text)")
    }
  }
}
