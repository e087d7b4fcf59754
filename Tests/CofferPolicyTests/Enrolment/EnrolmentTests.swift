import CofferCrypto
import CofferPolicy
import Foundation
import Testing

struct EnrolmentTests {
  let company = Company()

  @Test func `the first contact believes only the root that the code names`() throws {
    let enrolment = try company.enrol()
    #expect(enrolment.policy.revision == 5)
    #expect(enrolment.device == "device-1")
    #expect(throws: PolicyRefusal.foreignRoot) {
      try company.enrol(fingerprint: SigningKey().verifyingKey.fingerprint)
    }
    #expect(throws: PolicyRefusal.foreignRoot) { try company.enrol(fingerprint: []) }
    #expect(throws: PolicyRefusal.unknownKey(.keyset)) { try company.enrol(keyset: Company().keyset()) }
    #expect(throws: PolicyRefusal.unknownKey(.policy)) { try company.enrol(bundle: Company().bundle(1)) }
    #expect(throws: PolicyRefusal.otherAudience) {
      try company.enrol(bundle: company.bundle(1) { $0.audience = "device-2" })
    }
    #expect(try company.enrol(bundle: company.bundle(1) { $0.audience = "device-1" }).policy.revision == 1)
    let late = company.now + Company.lifetime + 1
    #expect(throws: PolicyRefusal.expired(.keyset)) { try company.enrol(now: late) }
    #expect(throws: PolicyRefusal.expired(.policy)) {
      try company.enrol(keyset: company.keyset(notAfter: late), now: late)
    }
    var foreign = company
    foreign.tenant = "globex"
    #expect(throws: PolicyRefusal.otherTenant) {
      try company.enrol(keyset: foreign.keyset(), bundle: foreign.bundle(1))
    }
  }

  @Test func `newer revisions are taken, the same is no change, older ones are refused`() throws {
    let first = try company.enrol()
    let keyset = try company.keyset()
    let same = try first.accepting(
      bundle: first.bundle.document.text, keyset: first.keyset.document.text, now: company.now)
    #expect(same == first)
    let next = try first.accepting(
      bundle: company.bundle(6, after: first.bundle.digest), keyset: keyset, now: company.now)
    #expect(next.policy.revision == 6)
    let jumped = try first.accepting(bundle: company.bundle(60), keyset: keyset, now: company.now)
    #expect(jumped.policy.revision == 60)
    for revision: Int64 in [1, 4] {
      #expect(throws: PolicyRefusal.olderRevision(held: 5, offered: revision)) {
        try first.accepting(bundle: company.bundle(revision), keyset: keyset, now: company.now)
      }
    }
    #expect(throws: PolicyRefusal.olderRevision(held: 6, offered: 5)) {
      try next.accepting(bundle: first.bundle.document.text, keyset: keyset, now: company.now)
    }
  }

  @Test func `another policy with the same number, or one that does not follow, is refused`() throws {
    let first = try company.enrol()
    let keyset = try company.keyset()
    #expect(throws: PolicyRefusal.conflictingRevision(5)) {
      try first.accepting(
        bundle: company.bundle(5) { $0.settings.allowFilteredTier = true }, keyset: keyset, now: company.now)
    }
    for previous in [nil, String(repeating: "0", count: 64)] {
      #expect(throws: PolicyRefusal.conflictingRevision(6)) {
        try first.accepting(bundle: company.bundle(6, after: previous), keyset: keyset, now: company.now)
      }
    }
  }

  @Test func `expired, foreign and altered documents are refused, and the policy stays`() throws {
    let first = try company.enrol()
    let next = try company.bundle(6, after: first.bundle.digest)
    let keyset = try company.keyset()
    let end = company.now + Company.lifetime
    #expect(try first.accepting(bundle: next, keyset: keyset, now: end).policy.revision == 6)
    let longKeyset = try company.keyset(notAfter: end + 10)
    #expect(throws: PolicyRefusal.expired(.policy)) {
      try first.accepting(bundle: next, keyset: longKeyset, now: end + 1)
    }
    #expect(throws: PolicyRefusal.expired(.keyset)) { try first.accepting(bundle: next, keyset: keyset, now: end + 1) }
    // The bundle that is held already is not taken again once it has expired.
    #expect(throws: PolicyRefusal.expired(.policy)) {
      try first.accepting(bundle: first.bundle.document.text, keyset: longKeyset, now: end + 1)
    }
    #expect(throws: PolicyRefusal.otherAudience) {
      try first.accepting(bundle: company.bundle(7) { $0.audience = "device-2" }, keyset: keyset, now: company.now)
    }
    #expect(throws: PolicyRefusal.otherTenant) {
      try first.accepting(bundle: company.bundle(7) { $0.tenant = "globex" }, keyset: keyset, now: company.now)
    }
    #expect(throws: PolicyRefusal.unknownKey(.policy)) {
      try first.accepting(bundle: company.bundle(7, key: SigningKey()), keyset: keyset, now: company.now)
    }
    #expect(throws: PolicyRefusal.unknownKey(.keyset)) {
      try first.accepting(bundle: next, keyset: company.keyset(root: SigningKey()), now: company.now)
    }
    #expect(first.policy.revision == 5)
  }

  @Test func `expiry is judged by the highest signed time too, so a clock set back helps nobody`() throws {
    let first = try company.enrol()
    let nonce = Self.nonce()
    let confirmed = try first.accepting(
      status: company.status(of: first, nonce: nonce) { $0.time = company.now + 500 }, nonce: nonce, now: company.now)
    #expect(throws: PolicyRefusal.expired(.policy)) {
      try confirmed.accepting(
        bundle: company.bundle(7) { $0.notAfter = company.now + 499 }, keyset: company.keyset(), now: 0)
    }
  }

  @Test func `a key signs no policy of a time behind its own end`() throws {
    let first = try company.enrol()
    let late = try company.bundle(6, after: first.bundle.digest) { policy in
      policy.issuedAt = company.now + Company.lifetime + 1
      policy.notAfter = policy.issuedAt + 1
    }
    #expect(throws: PolicyRefusal.expired(.keyset)) {
      try first.accepting(bundle: late, keyset: company.keyset(), now: company.now)
    }
    #expect(throws: PolicyRefusal.expired(.keyset)) { try company.enrol(bundle: late) }
    let longer = try company.keyset(notAfter: company.now + Company.lifetime + 1)
    #expect(try first.accepting(bundle: late, keyset: longer, now: company.now).policy.revision == 6)
  }

  @Test func `a rotation shuts out the old key, even after it ran ahead`() throws {
    let first = try company.enrol()
    let leaked = company
    let farAhead = try leaked.bundle(.max) { policy in
      policy.issuedAt = company.now + Company.lifetime
      policy.notAfter = 5_000_000_000
    }
    let hijacked = try first.accepting(bundle: farAhead, keyset: company.keyset(), now: company.now)
    #expect(hijacked.policy.revision == .max)

    var rotated = company
    rotated.key = SigningKey()
    rotated.epoch = 2
    rotated.now += 100
    // The true company goes on, with a lower revision and an earlier time than the thief's.
    let healed = try hijacked.accepting(
      bundle: rotated.bundle(6, after: first.bundle.digest), keyset: rotated.keyset(), now: rotated.now)
    #expect(healed.policy.revision == 6)
    #expect(healed.trustedTime == rotated.now)
    #expect(healed.age(now: rotated.now + 60) == 60)
    #expect(healed.isNotOlder(than: hijacked.anchor))
    #expect(!hijacked.isNotOlder(than: healed.anchor))

    #expect(throws: PolicyRefusal.olderKeyset(held: 2, offered: 1)) {
      try healed.accepting(bundle: farAhead, keyset: company.keyset(issuedAt: rotated.now + 1), now: rotated.now)
    }
    #expect(throws: PolicyRefusal.unknownKey(.policy)) {
      try healed.accepting(bundle: farAhead, keyset: rotated.keyset(), now: rotated.now)
    }
    #expect(throws: PolicyRefusal.unknownKey(.policy)) {
      try healed.accepting(bundle: rotated.bundle(7, key: leaked.key), keyset: rotated.keyset(), now: rotated.now)
    }
  }

  @Test func `a keyset may be renewed in its epoch, and not changed or turned back`() throws {
    let first = try company.enrol()
    let renewed = try company.keyset(issuedAt: company.now + 10)
    let next = try first.accepting(bundle: first.bundle.document.text, keyset: renewed, now: company.now)
    #expect(next.bundle == first.bundle)
    #expect(next.keyset.keyset.issuedAt == company.now + 10)
    #expect(throws: PolicyRefusal.olderKeyset(held: 1, offered: 1)) {
      try next.accepting(bundle: first.bundle.document.text, keyset: company.keyset(), now: company.now)
    }
    #expect(throws: PolicyRefusal.changedKeyset(epoch: 1)) {
      let keys = [company.key.verifyingKey, SigningKey().verifyingKey]
      return try first.accepting(
        bundle: first.bundle.document.text, keyset: company.keyset(keys: keys), now: company.now)
    }
  }

  static func nonce() -> String { Base64URL.encode((0..<32).map { _ in UInt8.random(in: 0...255) }) }

  @Test func `an older copy is recognised by the anchor`() throws {
    let first = try company.enrol()
    let next = try first.accepting(bundle: company.bundle(9), keyset: company.keyset(), now: company.now)
    #expect(first.isNotOlder(than: first.anchor))
    #expect(next.isNotOlder(than: first.anchor))
    #expect(!first.isNotOlder(than: next.anchor))
    #expect(!(try Company().enrol()).isNotOlder(than: first.anchor))
    let anchor = try JSONDecoder().decode(Enrolment.Anchor.self, from: JSONEncoder().encode(next.anchor))
    #expect(anchor == next.anchor)
  }

  @Test func `what is stored is verified again when it is read`() throws {
    let enrolment = try company.enrol()
    let data = try JSONEncoder().encode(enrolment)
    #expect(try JSONDecoder().decode(Enrolment.self, from: data) == enrolment)

    let text = String(decoding: data, as: UTF8.self)
    let others = try [
      text.replacing(enrolment.bundle.document.text, with: company.bundle(9, key: SigningKey())),
      text.replacing(enrolment.keyset.document.text, with: Company().keyset()),
      text.replacing(enrolment.root.text, with: SigningKey().verifyingKey.text),
      text.replacing(#""acme""#, with: #""globex""#),
      text.replacing(enrolment.bundle.document.text, with: company.bundle(9) { $0.audience = "device-2" }),
    ]
    for other in others {
      #expect(other != text)
      #expect(throws: (any Error).self) { try JSONDecoder().decode(Enrolment.self, from: Data(other.utf8)) }
    }
  }
}
