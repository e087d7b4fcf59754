import CofferCrypto
import CofferPolicy
import Foundation
import Testing

struct StatusTests {
  let company = Company()
  let nonce = EnrolmentTests.nonce()

  func accept(_ change: (inout Status) -> Void, now: Int64? = nil) throws -> Enrolment {
    let enrolment = try company.enrol()
    let status = try company.status(of: enrolment, nonce: nonce, change: change)
    return try enrolment.accepting(status: status, nonce: nonce, now: now ?? company.now)
  }

  @Test func `a status renews the grace period from the company's clock`() throws {
    let enrolment = try company.enrol()
    #expect(enrolment.age(now: company.now + 700) == 700)
    let next = try accept { $0.time = company.now + 600 }
    #expect(next.age(now: company.now + 700) == 100)
    #expect(next.lastStatus?.nonce == nonce)
    #expect(next.policy == enrolment.policy)
  }

  @Test func `an answer to another question proves nothing`() throws {
    let enrolment = try company.enrol()
    let replayed = try company.status(of: enrolment, nonce: EnrolmentTests.nonce())
    #expect(throws: PolicyRefusal.otherNonce) {
      try enrolment.accepting(status: replayed, nonce: nonce, now: company.now)
    }
  }

  @Test func `other devices, companies, epochs, keys and policies are refused`() throws {
    #expect(throws: PolicyRefusal.otherAudience) { try accept { $0.audience = "device-2" } }
    #expect(throws: PolicyRefusal.otherAudience) { try accept { $0.audience = Policy.everyDevice } }
    #expect(throws: PolicyRefusal.otherTenant) { try accept { $0.tenant = "globex" } }
    #expect(throws: PolicyRefusal.otherEpoch) { try accept { $0.keyEpoch = 2 } }
    #expect(throws: PolicyRefusal.outdated(held: 5, current: 6)) { try accept { $0.revision = 6 } }
    #expect(throws: PolicyRefusal.olderRevision(held: 5, offered: 4)) { try accept { $0.revision = 4 } }
    #expect(throws: PolicyRefusal.conflictingRevision(5)) {
      try accept { $0.digest = String(repeating: "0", count: 64) }
    }
    #expect(throws: PolicyRefusal.malformed("status")) { try accept { $0.digest = "" } }
    #expect(throws: PolicyRefusal.expired(.keyset)) { try accept({ _ in }, now: company.now + Company.lifetime + 1) }
    let enrolment = try company.enrol()
    var stranger = company
    stranger.key = SigningKey()
    let status = try stranger.status(of: enrolment, nonce: nonce)
    #expect(throws: PolicyRefusal.unknownKey(.status)) { try enrolment.accepting(status: status, nonce: nonce, now: 0) }
  }

  @Test func `a device is a witness of the audit, and keeps what it saw first`() throws {
    func mark(_ number: Int64, _ digit: String) -> AuditMark {
      AuditMark(number: number, hash: String(repeating: digit, count: 64))
    }
    func shown(_ mark: AuditMark?, to enrolment: Enrolment) throws -> Enrolment {
      let nonce = EnrolmentTests.nonce()
      let status = try company.status(of: enrolment, nonce: nonce) { $0.audit = mark }
      return try enrolment.accepting(status: status, nonce: nonce, now: company.now)
    }
    var enrolment = try company.enrol()
    for good in [nil, mark(3, "a"), mark(3, "a"), mark(7, "b"), mark(7, "b")] {
      enrolment = try shown(good, to: enrolment)
      #expect(enrolment.auditFault == nil && enrolment.auditMark == good)
    }
    for (bad, says) in [(mark(6, "a"), "back to entry 6"), (mark(7, "c"), "another entry 7"), (nil, "gone")] {
      let next = try shown(bad, to: enrolment)
      let fault = try #require(next.auditFault)
      #expect(fault.seen == mark(7, "b") && fault.shown == bad && fault.sentence.contains(says))
      #expect(PolicyText.isName(fault.sentence))
      // The policy is confirmed all the same: an audit that went back takes nothing away here. And it is not forgotten
      // when the audit has grown again, nor when it is stored.
      #expect(next.lastStatus != nil)
      let later = try shown(mark(9, "d"), to: next)
      #expect(later.auditFault == fault && later.auditMark == mark(9, "d"))
      let stored = try JSONDecoder().decode(Enrolment.self, from: JSONEncoder().encode(later))
      #expect(stored == later)
    }
  }

  @Test func `new keys begin a new mark of the audit, and what the old ones showed stays known`() throws {
    func mark(_ number: Int64, _ digit: String) -> AuditMark {
      AuditMark(number: number, hash: String(repeating: digit, count: 64))
    }
    func shown(_ mark: AuditMark?, by company: Company, to enrolment: Enrolment) throws -> Enrolment {
      let nonce = EnrolmentTests.nonce()
      let status = try company.status(of: enrolment, nonce: nonce) { $0.audit = mark }
      return try enrolment.accepting(status: status, nonce: nonce, now: company.now)
    }
    // Whoever stole the key leaves no number behind that the true audit could reach.
    var enrolment = try shown(mark(.max, "e"), by: company, to: company.enrol())
    enrolment = try shown(mark(7, "a"), by: company, to: enrolment)
    let stolen = try #require(enrolment.auditFault)
    #expect(stolen.epoch == 1)
    var rotated = company
    rotated.key = SigningKey()
    rotated.epoch = 2
    enrolment = try enrolment.accepting(bundle: rotated.bundle(6), keyset: rotated.keyset(), now: rotated.now)
    enrolment = try shown(mark(8, "b"), by: rotated, to: enrolment)
    #expect(enrolment.auditMark == mark(8, "b") && enrolment.auditFault == stolen)
    #expect(enrolment.auditWitness == mark(8, "b"))
    let stored = try JSONDecoder().decode(Enrolment.self, from: JSONEncoder().encode(enrolment))
    #expect(stored == enrolment)
    enrolment = try shown(mark(6, "c"), by: rotated, to: stored)
    let fault = try #require(enrolment.auditFault)
    #expect(fault.seen == mark(8, "b") && fault.epoch == 2 && enrolment.auditWitness == mark(8, "b"))
  }

  @Test func `a clock that is set back does not make the policy younger`() throws {
    let seen = try company.enrol().observing(now: company.now + 900)
    #expect(seen.age(now: 0) == 900)
    #expect(seen.observing(now: 0).age(now: 0) == 900)
    #expect(seen.age(now: .max) > 0)
  }

  @Test func `a clock that once ran ahead is corrected by the company's`() throws {
    let ahead = try company.enrol().observing(now: company.now + 100_000_000)
    #expect(ahead.age(now: company.now) == 100_000_000)
    let status = try company.status(of: ahead, nonce: nonce) { $0.time = company.now + 60 }
    #expect(try ahead.accepting(status: status, nonce: nonce, now: company.now + 60).age(now: company.now + 60) == 0)
  }

  @Test(arguments: [
    "", "AAAA", String(repeating: "A", count: 87), "AAAAAAAAAAAAAAAAAAAAAA==", "not a nonce, but a text!!",
  ])
  func `only random bytes are signed as a nonce`(text: String) {
    #expect(!Status.isNonce(text))
    #expect(throws: PolicyRefusal.self) { try company.status(of: company.enrol(), nonce: text) }
  }
}
