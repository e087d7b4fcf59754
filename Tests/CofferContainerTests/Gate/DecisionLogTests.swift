import CofferContainer
import CofferCrypto
import CofferFiles
import CofferKeys
import CofferPolicy
import CofferSystem
import CofferTestSupport
import Foundation
import Testing

/// The chain of a device's decisions, as processes that end in every way leave it.
struct DecisionLogTests {
  let folder: TemporaryFolder
  let container: Container
  let enrolment: Enrolment
  private let company: (root: SigningKey, key: SigningKey, now: Int64)

  static let passcode = Array("a passcode".utf8)

  init() throws {
    folder = try TemporaryFolder()
    container = try Container.create(
      at: folder("vault"), keyStore: FileKeyStore(path: folder("keys")),
      passcode: Self.passcode.withUnsafeBytes { SecretBytes(copying: $0) },
      derivation: PasscodeDerivation(costExponent: 15, salt: Randomness.bytes(32)), sniffer: ContentTypeHelper())
    let (root, key) = (SigningKey(), SigningKey())
    let now = SystemTime().now().seconds
    let keyset = Keyset(tenant: "acme", epoch: 1, keys: [key.verifyingKey], issuedAt: now, notAfter: now + 10_000)
    // The owner may not mount.
    let policy = Policy(
      tenant: "acme", revision: 1, keyEpoch: 1, issuedAt: now, notAfter: now + 10_000, prevHash: nil)
    company = (root, key, now)
    enrolment = try Enrolment(
      tenant: "acme", device: "device-1", server: "https://policy.example", root: root.verifyingKey,
      fingerprint: root.verifyingKey.fingerprint, pinnedCertificate: nil,
      keyset: SignedKeyset(issuing: keyset, root: root).document.text,
      bundle: PolicyBundle(issuing: policy, key: key).document.text, now: now)
    try container.enrol(enrolment, deviceKey: SigningKey())
  }

  func refuse(_ container: Container, times: Int = 1) {
    for _ in 0..<times {
      #expect(throws: ContainerError.self) { try container.view(of: VaultPath.root, isReadOnly: true) }
    }
  }

  /// The vault as a process would find it if this one were killed now.
  func killed(_ name: String) throws -> Container {
    for part in ["vault", "keys"] {
      let copy = Process()
      copy.executableURL = URL(fileURLWithPath: "/bin/cp")
      copy.arguments = ["-a", folder(part), folder(name + part)]
      try copy.run()
      copy.waitUntilExit()
    }
    return try Container.open(
      at: folder(name + "vault"), keyStore: FileKeyStore(path: folder(name + "keys")),
      passcode: { Self.passcode.withUnsafeBytes { SecretBytes(copying: $0) } }, sniffer: ContentTypeHelper())
  }

  /// The same device with another policy.
  private func enrolment(_ revision: Int64, _ settings: Settings, _ rules: [Rule] = []) throws -> Enrolment {
    let policy = Policy(
      tenant: "acme", revision: revision, keyEpoch: 1, issuedAt: company.now, notAfter: company.now + 10_000,
      prevHash: enrolment.bundle.digest, rules: rules, settings: settings)
    return try enrolment.accepting(
      bundle: PolicyBundle(issuing: policy, key: company.key).document.text, keyset: enrolment.keyset.document.text,
      now: company.now)
  }

  @Test func `a decision is durable when it is made, and those behind it leave a gap where they are lost`() throws {
    refuse(container)
    let first = try killed("first")
    #expect(try first.decisions().map(\.number) == [1])
    refuse(container, times: 2)
    let second = try killed("second")
    // The second and third were in memory alone; nobody takes their numbers.
    refuse(second)
    #expect(try second.decisions().map(\.number) == [1, 65])
    let chain = try second.verifyDecisions()
    #expect(chain.broken == nil && chain.gaps == [2...64] && chain.count == 2)
    try container.commit()
    let third = try killed("third")
    refuse(third)
    #expect(try third.decisions().map(\.number) == [1, 2, 3, 4])
    #expect(try third.verifyDecisions().gaps.isEmpty)
  }

  @Test func `a chain goes on from the newest entry that is there, whatever was stored with it`() throws {
    refuse(container, times: 64)
    // The block is used up, and nothing of it is given back.
    try container.commit()
    let full = try killed("full")
    refuse(full)
    #expect(try full.decisions().count == 65)
    #expect(try full.verifyDecisions().broken == nil)
    #expect(try full.verifyDecisions().gaps.isEmpty)
    refuse(container, times: 3)
    // Stored without what the chain has of itself, as what a company changes is.
    guard case .enrolled(let held) = container.enrolment else { return }
    try container.update(held.observing(now: SystemTime().now().seconds + 1))
    let cut = try killed("cut")
    refuse(cut)
    #expect(try cut.decisions().map(\.number).suffix(4) == [65, 66, 67, 129])
    #expect(try cut.verifyDecisions().broken == nil)
    #expect(try cut.verifyDecisions().gaps == [68...128])
  }

  @Test func `what the company has is not sent again, and a count that went back goes on behind it`() throws {
    refuse(container, times: 70)
    let sent = try container.undeliveredDecisions(limit: 50)
    #expect(sent.map(\.number) == Array(1...50))
    try container.noteDecisions(deliveredThrough: 50, companyHas: 50)
    let again = try killed("again")
    #expect(try again.undeliveredDecisions(limit: 500).map(\.number) == Array(51...70))
    // The company has more than this copy of the vault ever decided.
    try again.noteDecisions(deliveredThrough: 70, companyHas: 200)
    refuse(again)
    #expect(try again.undeliveredDecisions(limit: 500).map(\.number) == [201])
    // Nobody signed that: what this device decided stays, and what it does not have is missing.
    #expect(try again.decisions().map(\.number) == Array(1...70) + [201])
    let chain = try again.verifyDecisions()
    #expect(chain.broken == nil && chain.gaps == [71...200] && chain.count == 71)
    // What it says beyond all reason is not believed.
    try again.noteDecisions(deliveredThrough: 201, companyHas: .max)
    refuse(again)
    #expect(try again.undeliveredDecisions(limit: 500).map(\.number) == [202])
  }

  @Test func `whatever the company says it has, the newest entries are kept in order, and no others`() throws {
    let seed = UInt64.random(in: 0...UInt64.max)
    var generator = SeededGenerator(seed: seed)
    var (made, last): ([Int64], Int64) = ([], 0)
    for _ in 0..<60 {
      let count = Int64.random(in: 0...40, using: &generator)
      refuse(container, times: Int(count))
      made += last + 1..<last + 1 + count
      last += count
      let said = last + Int64.random(in: -3...200, using: &generator)
      // Whatever of it was sent.
      let delivered = Int64.random(in: 0...last, using: &generator)
      try container.noteDecisions(deliveredThrough: said > last ? delivered : last, companyHas: max(0, said))
      last = max(last, said)
      let kept = try container.decisions().map(\.number)
      #expect(kept == made, "seed \(seed)")
      let chain = try container.verifyDecisions()
      #expect(chain.broken == nil && chain.count == Int64(kept.count), "seed \(seed)")
      #expect(try container.undeliveredDecisions(limit: 500).isEmpty, "seed \(seed)")
    }
  }

  @Test func `what the company says it has is believed as often as a vault may be put back`() throws {
    var last: Int64 = 0
    for round in 0..<70 {
      refuse(container)
      last += 1
      try container.noteDecisions(deliveredThrough: last, companyHas: last + 10)
      if round < 64 { last += 10 }
    }
    #expect(try container.decisions().count == 70)
    #expect(try container.decisions().last?.number == last)
    #expect(try container.verifyDecisions().gaps.count == 64)
  }

  private static let savedCopies = Settings(ownerActions: [.import, .saveCopy], allowFilteredTier: false)

  private func put(_ text: String, at path: String) throws {
    let file = try FileSystem().open(folder("source"), [.readWrite, .create])
    try file.writeAll(Array(text.utf8))
    try container.importFile(
      ImportSource(
        descriptor: FileSystem().open(folder("source"), .readOnly), byteCount: UInt64(text.utf8.count),
        permissions: 0o600, modified: nil),
      to: VaultPath(path), replacing: false)
  }

  @Test func `nothing leaves that cannot be recorded, and what is refused so is missed`() throws {
    try container.update(enrolment(2, Self.savedCopies))
    try put("text", at: "/file")
    try container.commit()
    refuse(container)
    #expect(try container.decisions().map(\.number) == [1])
    // Whoever takes the index away takes the record with it: nothing is stored any more.
    let (index, away) = (folder("vault/index.sqlite"), folder("away"))
    for _ in 0..<63 { _ = try container.openForSaving(VaultPath("/file")) }
    try FileManager.default.moveItem(atPath: index, toPath: away)
    for _ in 0..<3 {
      let error = #expect(throws: ContainerError.self) { try container.openForSaving(VaultPath("/file")) }
      #expect(error?.description.contains("recorded first") == true && error?.decision == nil)
    }
  }

  @Test func `what takes its time is let out only if the policy still says so`() throws {
    try container.update(enrolment(2, Self.savedCopies))
    try put("text", at: "/file")
    let copy = try container.openForSaving(VaultPath("/file"))
    func write(_ copy: SavedCopy) throws {
      try copy.write(to: FileSystem().open(folder("copy"), [.readWrite, .create]), isSeekable: true)
    }
    try write(copy)
    try container.update(enrolment(3, .initial))
    let error = #expect(throws: ContainerError.self) { try write(copy) }
    #expect(error?.decision?.revision == 3)
    // Each that was let out, and each refusal, once.
    let records = try container.decisions().compactMap { DecisionRecord(text: $0.text) }
    #expect(records.map(\.revision) == [2, 3] && records.map(\.action) == [.saveCopy, .saveCopy])
  }

  @Test func `a rule about a locked device is about its vault`() throws {
    let isLocked = Rule(
      id: "locked", effect: .forbid, actions: [.saveCopy], conditions: [Condition(.deviceUnlocked, negated: true)])
    try container.update(enrolment(2, Self.savedCopies, [isLocked]))
    try put("text", at: "/file")
    try container.protect(VaultPath("/file"), as: .none)
    _ = try container.openForSaving(VaultPath("/file"))
    container.lock(graceSeconds: 0)
    let error = #expect(throws: ContainerError.self) { try container.openForSaving(VaultPath("/file")) }
    #expect(error?.decision?.rules == ["locked"])
    try container.unlock(passcode: Self.passcode.withUnsafeBytes { SecretBytes(copying: $0) })
    _ = try container.openForSaving(VaultPath("/file"))
  }

  @Test func `an entry names the one before, and no file`() throws {
    refuse(container, times: 3)
    let entries = try container.decisions().map(\.text)
    let records = try entries.map { try #require(DecisionRecord(text: $0)) }
    #expect(records.map(\.previous) == [DecisionRecord.beginning] + entries.dropLast().map(DecisionRecord.hash))
    #expect(records.allSatisfy { $0.action == .mount && $0.actor == "owner" && $0.reason == .ownerActionNotAllowed })
    for (index, text) in entries.enumerated() {
      // Every other text of it is another entry, or none.
      let altered = text.replacingOccurrences(of: "mount", with: "print")
      var chain = DecisionChain(from: 1)
      for (number, entry) in entries.enumerated() {
        chain.add(Int64(number + 1), number == index ? altered : entry)
      }
      chain.end(hash: DecisionRecord.hash(of: entries[2]))
      #expect(chain.broken == Int64(min(index + 2, 3)))
      #expect(DecisionRecord(text: text + " ") == nil)
    }
  }
}
