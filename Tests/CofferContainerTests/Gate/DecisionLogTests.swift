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
    let enrolment = try Enrolment(
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
    #expect(try again.verifyDecisions().broken == nil)
    // What it says beyond all reason is not believed.
    try again.noteDecisions(deliveredThrough: 201, companyHas: .max)
    refuse(again)
    #expect(try again.undeliveredDecisions(limit: 500).map(\.number) == [202])
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
