import CofferPolicy
import Foundation
import Testing

/// The age of a policy, by a clock that somebody sets and one that nobody does.
struct FreshnessTests {
  let company = Company()

  func confirmed(uptime: Uptime?) throws -> Enrolment {
    let enrolment = try company.enrol()
    let nonce = EnrolmentTests.nonce()
    let status = try company.status(of: enrolment, nonce: nonce)
    return try enrolment.accepting(status: status, nonce: nonce, now: company.now, uptime: uptime)
  }

  @Test func `time that passes counts though the clock is held still or set back`() throws {
    let enrolment = try confirmed(uptime: Uptime(boot: "a", seconds: 50))
    let later = Uptime(boot: "a", seconds: 950)
    #expect(enrolment.age(now: company.now, uptime: later) == 900)
    #expect(enrolment.age(now: 0, uptime: later) == 900)
    #expect(enrolment.age(now: company.now + 2_000, uptime: later) == 2_000)
    #expect(enrolment.age(now: company.now, uptime: Uptime(boot: "a", seconds: 10)) == 0)
    #expect(enrolment.age(now: company.now, uptime: Uptime(boot: "a", seconds: .max)) > 0)
  }

  @Test func `what was counted stays through a restart, and is counted on`() throws {
    let before = try confirmed(uptime: Uptime(boot: "a", seconds: 0))
      .observing(now: 0, uptime: Uptime(boot: "a", seconds: 600))
    let restarted = Uptime(boot: "b", seconds: 5)
    #expect(before.age(now: 0, uptime: restarted) == 600)
    let after = before.observing(now: 0, uptime: restarted)
    #expect(after.age(now: 0, uptime: Uptime(boot: "b", seconds: 305)) == 900)
    let read = try JSONDecoder().decode(Enrolment.self, from: JSONEncoder().encode(after))
    #expect(read.age(now: 0, uptime: Uptime(boot: "b", seconds: 305)) == 900)
  }

  @Test func `a confirmation begins anew, and counts from the question`() throws {
    let old = try confirmed(uptime: Uptime(boot: "a", seconds: 0))
    let nonce = EnrolmentTests.nonce()
    let status = try company.status(of: old, nonce: nonce) { $0.time = company.now + 500 }
    let asked = Uptime(boot: "a", seconds: 500)
    let new = try old.accepting(status: status, nonce: nonce, now: company.now, uptime: asked)
    #expect(new.age(now: company.now, uptime: Uptime(boot: "a", seconds: 520)) == 20)
  }

  @Test func `the company's status says which groups the device is in`() throws {
    let enrolment = try company.enrol()
    #expect(enrolment.groups == nil)
    let nonce = EnrolmentTests.nonce()
    let status = try company.status(of: enrolment, nonce: nonce) { $0.groups = ["board", "sales"] }
    let told = try enrolment.accepting(status: status, nonce: nonce, now: company.now)
    #expect(told.groups == ["board", "sales"])
    // A newer policy alone takes nobody out of a group; a status without groups does.
    let newer = try told.accepting(
      bundle: company.bundle(6, after: told.bundle.digest), keyset: company.keyset(), now: company.now)
    #expect(newer.groups == ["board", "sales"])
    let read = try JSONDecoder().decode(Enrolment.self, from: JSONEncoder().encode(newer))
    #expect(read.groups == ["board", "sales"])
    let next = EnrolmentTests.nonce()
    let none = try newer.accepting(
      status: company.status(of: newer, nonce: next), nonce: next, now: company.now)
    #expect(none.groups == [])
    for groups in [["a", "a"], ["a:b"], Array(repeating: "x", count: 101)] {
      #expect(throws: PolicyRefusal.malformed("status")) {
        try company.status(of: enrolment, nonce: nonce) { $0.groups = groups }
      }
    }
  }

  @Test func `before the company has said it, a rule about groups forbids and permits nothing`() {
    let scoped = DecisionTests.policy { policy in
      policy.rules = [Rule(id: "no", effect: .forbid, groups: ["board"])]
    }
    let negated = DecisionTests.policy { policy in
      policy.rules = [Rule(id: "no", effect: .forbid, conditions: [Condition(.group("board"), negated: true)])]
    }
    for (policy, member, stranger) in [(scoped, false, true), (negated, true, false)] {
      func ask(_ groups: Set<String>?) -> Decision {
        decide(
          Request(
            actor: .owner, action: .view, file: nil, principal: Principal(device: "device-1", groups: groups)),
          policy: policy,
          context: DecisionContext(now: 0, policyAge: 0, isDeviceUnlocked: true, osVersion: "1"))
      }
      #expect(ask(["board"]).isPermitted == member)
      #expect(ask(["sales"]).isPermitted == stranger)
      #expect(ask(nil).reason == .ruleFailed)
    }
    let permit = DecisionTests.policy { policy in
      policy.rules = [Rule(id: "yes", effect: .permit, actions: [.view], groups: ["board"])]
    }
    let app = RequestingApp(
      identity: DecisionTests.editor, version: "1.0", teamKey: DecisionTests.team, tier: .mediated)
    let request = Request(
      actor: .app(app), action: .view, file: FileFacts(content: DecisionTests.pdf, protection: .complete, size: 1),
      principal: Principal(device: "device-1", groups: nil))
    let context = DecisionContext(now: 0, policyAge: 0, isDeviceUnlocked: true, osVersion: "1")
    #expect(!decide(request, policy: permit, context: context).isPermitted)
  }
}
