import CofferContainer
import CofferCrypto
import CofferFiles
import CofferKeys
import CofferPolicy
import CofferSystem
import CofferTestSupport
import Foundation
import Testing

/// What an unlock makes of the escrow key that a policy asks for.
final class ContainerEscrowTests {
  private let folder: TemporaryFolder
  private let (root, key) = (SigningKey(), SigningKey())
  private let now = SystemTime().now().seconds
  private var revision: Int64 = 0
  private var previous: String?

  init() throws {
    folder = try TemporaryFolder()
    let container = try Container.create(
      at: folder("vault"), keyStore: FileKeyStore(path: folder("keys")), passcode: Self.passcode,
      derivation: PasscodeDerivation(costExponent: 15, salt: Randomness.bytes(32)), sniffer: ContentTypeHelper())
    let enrolment = try Enrolment(
      tenant: "acme", device: "device-1", server: "https://policy.example", root: root.verifyingKey,
      fingerprint: root.verifyingKey.fingerprint, pinnedCertificate: nil, keyset: try keyset(), bundle: try bundle(nil),
      now: now)
    try container.enrol(enrolment, deviceKey: SigningKey())
    try container.close()
  }

  private static var passcode: SecretBytes { Array("a passcode".utf8).withUnsafeBytes { SecretBytes(copying: $0) } }

  private func keyset() throws -> String {
    let keyset = Keyset(tenant: "acme", epoch: 1, keys: [key.verifyingKey], issuedAt: now, notAfter: now + 10_000)
    return try SignedKeyset(issuing: keyset, root: root).document.text
  }

  private func bundle(_ escrow: JSONValue?) throws -> String {
    revision += 1
    var policy = Policy(
      tenant: "acme", revision: revision, keyEpoch: 1, issuedAt: now, notAfter: now + 10_000, prevHash: previous)
    policy.settings.managed = escrow.map { ["escrow": $0] }
    let bundle = try PolicyBundle(issuing: policy, key: key)
    previous = bundle.digest
    return bundle.document.text
  }

  private func delegation(_ key: HybridKey, issuedAt: Int64, by root: SigningKey? = nil, until: Int64? = nil) throws
    -> JSONValue
  {
    let delegation = Delegation(
      tenant: "acme", use: .escrow, key: Base64URL.encode(key.publicKey.bytes), issuedAt: issuedAt,
      notAfter: until ?? now + 10_000)
    return .string(try SignedDelegation(issuing: delegation, root: root ?? self.root).document.text)
  }

  private func open() throws -> Container {
    try Container.open(
      at: folder("vault"), keyStore: FileKeyStore(path: folder("keys")), passcode: { Self.passcode },
      sniffer: ContentTypeHelper())
  }

  /// Gives the device a policy, opens the vault once more, and says what came of it.
  private func follow(_ escrow: JSONValue?) throws -> (change: EscrowChange?, key: HybridPublicKey?) {
    let before = try open()
    guard case .enrolled(let held) = before.enrolment else { throw ContainerError(.notFound, "not enrolled") }
    try before.update(held.accepting(bundle: bundle(escrow), keyset: keyset(), now: now))
    try before.close()
    let container = try open()
    defer { try? container.close() }
    return (container.takeEscrowChange(), try container.keySummary().escrowKey)
  }

  @Test func `the key that the root delegated last is put in, and an earlier one does not come back`() throws {
    let (first, second, thief) = (HybridKey(), HybridKey(), HybridKey())
    #expect(try follow(delegation(first, issuedAt: 10)) == (.added(first.publicKey), first.publicKey))
    #expect(try follow(delegation(first, issuedAt: 10)) == (nil, first.publicKey))
    #expect(try follow(delegation(second, issuedAt: 20)) == (.added(second.publicKey), second.publicKey))
    // By who has the online key: one of before, one of their own, one that has ended, and the word without a key.
    #expect(try follow(delegation(first, issuedAt: 10)) == (nil, second.publicKey))
    #expect(try follow(delegation(thief, issuedAt: 30, by: key)) == (nil, second.publicKey))
    #expect(try follow(delegation(thief, issuedAt: 30, until: now - 1)) == (nil, second.publicKey))
    #expect(try follow(.boolean(true)) == (nil, second.publicKey))
    #expect(try follow(nil) == (.removed, nil))
    #expect(try follow(delegation(first, issuedAt: 10)) == (nil, nil))
    let container = try open()
    let events = try container.decisions().compactMap { DecisionRecord(text: $0.text)?.event }
    #expect(events == [.escrowKeyAdded, .escrowKeyAdded, .escrowKeyRemoved])
    #expect(try container.verifyDecisions().broken == nil)
    try container.close()
  }

  @Test func `a clearing is refused by a device whose policy asks for another key or none`() throws {
    let company = HybridKey()
    #expect(try follow(delegation(company, issuedAt: 10)).key == company.publicKey)
    let container = try open()
    let offer = try #require(try container.escrowOffer())
    let (text, code) = try offer.clearing(with: company, tenant: "acme", device: "device-1")
    guard case .enrolled(let held) = container.enrolment else { return }
    let other = try held.accepting(
      bundle: bundle(delegation(HybridKey(), issuedAt: 20)), keyset: keyset(), now: now)
    try container.update(other)
    #expect(throws: ContainerError.self) { try container.takeClearing(text) }
    try container.update(other.accepting(bundle: bundle(nil), keyset: keyset(), now: now))
    #expect(throws: ContainerError.self) { try container.takeClearing(text) }
    #expect(throws: ContainerError.self) {
      try Container.requireClearing(code, at: folder("vault"), keyStore: FileKeyStore(path: folder("keys")))
    }
    // Its key store's word alone keeps nobody out or in: a copy that was made up for another device is refused there.
    #expect(throws: ContainerError.self) { try offer.clearing(with: company, tenant: "acme", device: "device-2") }
    try container.close()
  }

  /// The place of an item in the key store.
  private func item(_ name: String) throws -> String {
    let container = try open()
    defer { try? container.close() }
    return folder("keys") + "/\(container.id)/\(name)"
  }

  private func events() throws -> [DeviceEvent] {
    let container = try open()
    defer { try? container.close() }
    #expect(try container.verifyDecisions().broken == nil)
    return try container.decisions().compactMap { DecisionRecord(text: $0.text)?.event }
  }

  @Test func `a use of the key is kept until it can be recorded`() throws {
    let company = HybridKey()
    #expect(try follow(delegation(company, issuedAt: 10)).key == company.publicKey)
    // Whose the vault is cannot be told, so that there is no revision to record a use under.
    let enrolment = try Data(contentsOf: URL(filePath: item("enrolment")))
    try Data("{}".utf8).write(to: URL(filePath: item("enrolment")))
    let recovered = try Container.recover(
      at: folder("vault"), keyStore: FileKeyStore(path: folder("keys")), with: .escrowKey(company),
      passcode: { Self.passcode },
      derivation: PasscodeDerivation(costExponent: 15, salt: Randomness.bytes(32)), sniffer: ContentTypeHelper())
    guard case .policyMissing = recovered.enrolment else { throw ContainerError(.notFound, "a policy is there") }
    try recovered.close()
    try enrolment.write(to: URL(filePath: item("enrolment")))
    #expect(try events() == [.escrowKeyAdded, .escrowKeyUsed])
    #expect(try events() == [.escrowKeyAdded, .escrowKeyUsed])
  }

  @Test func `a record of uses that is gone is recorded, once`() throws {
    let company = HybridKey()
    #expect(try follow(delegation(company, issuedAt: 10)).key == company.publicKey)
    #expect(try events() == [.escrowKeyAdded])
    try FileManager.default.removeItem(atPath: item("escrow"))
    #expect(try events() == [.escrowKeyAdded, .escrowRecordMissing])
    #expect(try events() == [.escrowKeyAdded, .escrowRecordMissing])
    try Data(repeating: 1, count: 200).write(to: URL(filePath: item("escrow")))
    #expect(try events() == [.escrowKeyAdded, .escrowRecordMissing, .escrowRecordMissing])
  }

  @Test func `a clearing that was taken is recorded by whoever opens next, and ends with the passcode`() throws {
    let company = HybridKey()
    #expect(try follow(delegation(company, issuedAt: 10)).key == company.publicKey)
    let before = try open()
    let offer = try #require(try before.escrowOffer())
    try before.close()
    let (text, code) = try offer.clearing(with: company, tenant: "acme", device: "device-1")
    let keyStore = FileKeyStore(path: folder("keys"))
    try Container.takeClearing(text, at: folder("vault"), keyStore: keyStore)
    try Container.requireClearing(code, at: folder("vault"), keyStore: keyStore)
    #expect(try events() == [.escrowKeyAdded, .passcodeCleared])
    #expect(try events() == [.escrowKeyAdded, .passcodeCleared])
    #expect(throws: ContainerError.self) {
      try Container.requireClearing(code, at: folder("vault"), keyStore: keyStore)
    }
    let container = try open()
    // The order's clearing is known, and opens nothing: the key that it was sealed to is gone.
    let clearing = try #require(Base64URL.decode(text))
    #expect(container.hasTaken(clearing: Digest.sha256(clearing)))
    #expect(!container.hasTaken(clearing: Digest.sha256([0] as [UInt8])))
    let next = try #require(try container.escrowOffer())
    #expect(next.clearingKey != offer.clearingKey)
    #expect(throws: ContainerError.self) { try container.takeClearing(text) }
    // And another is taken while the vault is open.
    try container.takeClearing(next.clearing(with: company, tenant: "acme", device: "device-1").text)
    let now = try container.decisions().compactMap { DecisionRecord(text: $0.text)?.event }
    #expect(now == [.escrowKeyAdded, .passcodeCleared, .passcodeCleared])
    try container.close()
  }

  @Test func `a change of the passcode tells what the old one made of the company's key, also where it fails`() throws {
    struct Interrupted: Error {}
    let company = HybridKey()
    let before = try open()
    guard case .enrolled(let held) = before.enrolment else { return }
    try before.update(
      held.accepting(bundle: bundle(delegation(company, issuedAt: 10)), keyset: keyset(), now: now))
    try before.close()
    var told: [EscrowChange] = []
    #expect(throws: Interrupted.self) {
      try Container.changePasscode(
        at: folder("vault"), keyStore: FileKeyStore(path: folder("keys")), old: { Self.passcode },
        new: { throw Interrupted() }, sniffer: ContentTypeHelper(), onEscrowChange: { told.append($0) })
    }
    #expect(told == [.added(company.publicKey)])
  }

  @Test func `an answer that was given earlier than the one held changes nothing`() throws {
    func status(_ held: Enrolment, at time: Int64, audit: AuditMark) throws -> Enrolment {
      let nonce = Base64URL.encode(Randomness.bytes(16))
      let status = Status(
        tenant: "acme", audience: "device-1", nonce: nonce, revision: held.policy.revision, digest: held.bundle.digest,
        time: time, keyEpoch: 1, audit: audit)
      return try held.accepting(status: SignedStatus(issuing: status, key: key).document.text, nonce: nonce, now: time)
    }
    func mark(_ number: Int64, _ digit: String) -> AuditMark {
      AuditMark(number: number, hash: String(repeating: digit, count: 64))
    }
    let container = try open()
    guard case .enrolled(let held) = container.enrolment else { return }
    let (first, second) = try (
      status(held, at: now + 10, audit: mark(4, "a")), status(held, at: now + 20, audit: mark(7, "b"))
    )
    try container.update(second)
    #expect(throws: ContainerError.self) { try container.update(first) }
    guard case .enrolled(let kept) = container.enrolment else { return }
    #expect(kept == second)
    // A later one that knew nothing of it forgets nothing.
    try container.update(status(held, at: now + 30, audit: mark(5, "c")))
    guard case .enrolled(let merged) = container.enrolment else { return }
    #expect(merged.auditMark == mark(7, "b") && merged.confirmedAt == now + 30 && merged.auditFault == nil)
    try container.update(status(held, at: now + 40, audit: mark(7, "d")))
    #expect(container.auditFault?.seen == mark(7, "b") && container.auditFault?.shown == mark(7, "d"))
    try container.close()
  }
}

private func == (
  left: (change: EscrowChange?, key: HybridPublicKey?), right: (change: EscrowChange?, key: HybridPublicKey?)
) -> Bool { left.change == right.change && left.key == right.key }
