import CofferCrypto
import CofferPolicy
import Foundation
import Testing

struct OrderBookTests {
  let company = Company()
  let wipeKey = SigningKey()
  let book = OrderBook()

  /// An enrolment that the company has just confirmed.
  func enrolment(at time: Int64? = nil) throws -> Enrolment {
    let enrolment = try company.enrol()
    let nonce = EnrolmentTests.nonce()
    let status = try company.status(of: enrolment, nonce: nonce) { $0.time = time ?? company.now }
    return try enrolment.accepting(status: status, nonce: nonce, now: company.now)
  }

  func delegation(
    _ key: SigningKey? = nil, use: Delegation.Use = .wipe, tenant: String = "acme", until notAfter: Int64? = nil,
    root: SigningKey? = nil
  ) throws -> String {
    let delegation = Delegation(
      tenant: tenant, use: use, key: (key ?? wipeKey).verifyingKey.text, issuedAt: 1,
      notAfter: notAfter ?? company.now + 1_000)
    return try SignedDelegation(issuing: delegation, root: root ?? company.root).document.text
  }

  func order(
    _ kind: DeviceCommand.Kind, _ id: String = "o-1", key: SigningKey? = nil,
    change: (inout DeviceCommand) -> Void = { _ in }
  ) throws -> String {
    var command = DeviceCommand(
      tenant: "acme", audience: "device-1", id: id, kind: kind, issuedAt: company.now, notAfter: company.now + 100)
    change(&command)
    let usual = kind == .wipe ? wipeKey : company.key
    return try SignedCommand(issuing: command, key: key ?? usual).document.text
  }

  func admit(_ text: String, delegations: [String]? = nil, at time: Int64? = nil) throws -> OrderBook.Admission {
    try book.admit(text, for: enrolment(at: time), delegations: delegations ?? [delegation()])
  }

  @Test(arguments: DeviceCommand.Kind.allCases)
  func `an order of the company's for this device is new once`(kind: DeviceCommand.Kind) throws {
    let text = try order(kind)
    guard case .new(let command) = try admit(text) else {
      Issue.record("not new")
      return
    }
    #expect(command.kind == kind && command.id == "o-1")
    var book = book
    book.begin(command)
    #expect(try book.admit(text, for: enrolment(), delegations: [delegation()]) == .known)
    #expect(book.interrupted.map(\.order) == ["o-1"] && book.undelivered.isEmpty)
    book.answer("o-1", receipt: "r")
    #expect(try book.admit(text, for: enrolment(), delegations: [delegation()]) == .known)
    #expect(book.interrupted.isEmpty && book.undelivered.map(\.receipt) == ["r"])
    book.deliver("o-1")
    #expect(book.undelivered.isEmpty)
    // Stored and read again it is the same.
    let read = try JSONDecoder().decode(OrderBook.self, from: JSONEncoder().encode(book))
    #expect(read == book)
    #expect(try read.admit(text, for: enrolment(), delegations: [delegation()]) == .known)
  }

  @Test func `an order for others, of others, or for another time is refused`() throws {
    #expect(throws: PolicyRefusal.otherAudience) { try admit(order(.lock) { $0.audience = "device-2" }) }
    #expect(throws: PolicyRefusal.otherAudience) { try admit(order(.lock) { $0.audience = Policy.everyDevice }) }
    #expect(throws: PolicyRefusal.otherTenant) { try admit(order(.lock) { $0.tenant = "globex" }) }
    #expect(throws: PolicyRefusal.unknownKey(.command)) { try admit(order(.lock, key: SigningKey())) }
    #expect(throws: PolicyRefusal.expired(.command)) { try admit(order(.lock), at: company.now + 101) }
    #expect(throws: PolicyRefusal.unconfirmed) {
      try book.admit(order(.lock), for: company.enrol(), delegations: [])
    }
    let text = try order(.lock)
    let parts = text.split(separator: ".")
    let other = try order(.lock, "o-2").split(separator: ".")
    #expect(throws: PolicyRefusal.notAuthentic(.command)) { try admit("\(parts[0]).\(other[1]).\(parts[2])") }
    #expect(throws: PolicyRefusal.oversize) { try admit(text + String(repeating: "A", count: 17_000)) }
    // Another signed document of the company's is no order.
    #expect(throws: PolicyRefusal.unexpectedHeader(.command)) { try admit(delegation()) }
  }

  @Test
  func `a status for an earlier time brings no order back, and one for a later time lasts no longer than its key`()
    throws
  {
    let wipe = try order(.wipe) { $0.notAfter = company.now + 50 }
    let (late, early) = (company.now + 60, company.now + 10)
    var enrolment = try enrolment(at: late)
    #expect(throws: PolicyRefusal.expired(.command)) {
      try book.admit(wipe, for: enrolment, delegations: [delegation()])
    }
    let nonce = EnrolmentTests.nonce()
    let status = try company.status(of: enrolment, nonce: nonce) { $0.time = early }
    enrolment = try enrolment.accepting(status: status, nonce: nonce, now: company.now)
    #expect(throws: PolicyRefusal.expired(.command)) {
      try book.admit(wipe, for: enrolment, delegations: [delegation()])
    }
    let end = enrolment.keyset.keyset.notAfter
    let ahead = try company.status(of: enrolment, nonce: nonce) { $0.time = end + 1 }
    #expect(throws: PolicyRefusal.expired(.keyset)) {
      try enrolment.accepting(status: ahead, nonce: nonce, now: company.now)
    }
  }

  @Test func `a wipe needs the delegated key, and that key is good for nothing else`() throws {
    let wipe = try order(.wipe)
    #expect(throws: PolicyRefusal.unknownKey(.command)) { try admit(order(.wipe, key: company.key)) }
    #expect(throws: PolicyRefusal.unknownKey(.command)) { try admit(order(.lock, key: wipeKey)) }
    #expect(throws: PolicyRefusal.unknownKey(.command)) { try admit(wipe, delegations: []) }
    for delegations in [
      [try delegation(SigningKey())], [try delegation(root: SigningKey())], [try delegation(tenant: "globex")],
      [try delegation(until: company.now - 1)], [try delegation(use: .escrow)], ["", "a.b.c"],
    ] {
      #expect(throws: PolicyRefusal.unknownKey(.command)) { try admit(wipe, delegations: delegations) }
    }
    let mixed = ["a.b.c", try delegation(SigningKey()), try delegation()]
    guard case .new = try admit(wipe, delegations: mixed) else {
      Issue.record("not new")
      return
    }
  }

  @Test func `what cannot be remembered waits, but for a wipe`() throws {
    var book = book
    for number in 0..<OrderBook.maximumCount {
      book.begin(
        DeviceCommand(
          tenant: "acme", audience: "device-1", id: "n-\(number)", kind: .refresh, issuedAt: 1, notAfter: company.now))
    }
    #expect(try book.admit(order(.lock), for: enrolment(), delegations: []) == .full)
    guard case .new = try book.admit(order(.wipe), for: enrolment(), delegations: [delegation()]) else {
      Issue.record("a wipe waits")
      return
    }
    // Neither time nor an answer alone makes room: the receipt must be there, too.
    book.forget(endedBefore: company.now + 1)
    #expect(book.interrupted.count == OrderBook.maximumCount)
    for number in 0..<OrderBook.maximumCount {
      book.answer("n-\(number)", receipt: "r")
      book.deliver("n-\(number)")
    }
    book.forget(endedBefore: company.now)
    #expect(try book.admit(order(.lock), for: enrolment(), delegations: []) == .full)
    book.forget(endedBefore: company.now + 1)
    guard case .new = try book.admit(order(.lock), for: enrolment(), delegations: []) else {
      Issue.record("no room")
      return
    }
  }
}
