import CofferCrypto
import CofferFiles
import CofferKeys
import CofferSystem
import CofferTestSupport
import CofferVault
import Foundation
import Synchronization
import Testing

@testable import CofferContainer
@testable import coffer

/// The agent's loop in this process, so that its clocks can be moved.
@Suite struct AgentServerTests {
  private let folder: TemporaryFolder
  private let place: OwnedDescriptor
  private let clock = MovedClock()
  private let bell: Bell

  init() throws {
    folder = try TemporaryFolder()
    place = try FileSystem().open(folder.path, .directory)
    bell = try Bell()
  }

  private final class MovedClock {
    var now = ContinuousClock.now
  }

  /// Of the vault: what it does by itself some time later never comes.
  private struct NoScheduler: Scheduler {
    func schedule(afterSeconds seconds: Double, _ body: @escaping @Sendable () -> Void) {}
  }

  private var passcode: SecretBytes { Array(Desk.passcode.utf8).withUnsafeBytes { SecretBytes(copying: $0) } }

  private func makeContainer() throws -> Container {
    var options = VaultOptions()
    options.scheduler = NoScheduler()
    let keyStore = FileKeyStore(path: folder("keys"))
    let vault = try Vault.create(
      at: folder("vault"), keyStore: keyStore, passcode: passcode,
      derivation: PasscodeDerivation(
        costExponent: PasscodeDerivation.costExponents.lowerBound, salt: Randomness.bytes(32)), options: options)
    return try Container(vault, keyStore: keyStore, sniffer: ContentTypeHelper(), time: SystemTime())
  }

  private func held(_ container: Container, at path: String, keyStore: String) throws -> HeldVault {
    HeldVault(
      container, path: path, identity: try FolderIdentity(at: path), keyStore: nil, graceSeconds: 0,
      mounts: HeldMounts(container),
      link: { HeldLink(container, mounts: $0, path: path, keyStorePath: keyStore, didWipe: {}) }, didChange: {})
  }

  private func server(_ vault: HeldVault) throws -> AgentServer {
    AgentServer(
      vault, listener: try LocalSocket.listen("socket", in: place, path: folder.path), bell: bell, idleMinutes: 0,
      memoryLocked: false, now: { [clock] in clock.now }, removeSocket: {})
  }

  private func client() throws -> LocalSocket {
    try #require(try LocalSocket.connect("socket", in: place, path: folder.path))
  }

  @Test func `a request that does not come to its end is given up`() throws {
    let container = try makeContainer()
    let vault = try held(container, at: folder("vault"), keyStore: folder("keys"))
    let server = try server(vault)
    let slow = try client()
    try server.step(waiting: .seconds(60))
    try slow.send(Array(IncomingRequest.mark.prefix(4)))
    try server.step(waiting: .seconds(60))
    clock.now += AgentServer.requestTime
    try server.step(waiting: .zero)
    #expect(try AgentAnswer.receive(from: slow) == nil)

    // In time it is answered.
    let other = try client()
    try server.step(waiting: .seconds(60))
    clock.now += AgentServer.requestTime - .seconds(1)
    try AgentRequest(.status(untilLocked: false), of: vault.identity).message.withUnsafeBytes { try other.send($0) }
    try server.step(waiting: .seconds(60))
    guard case .outcome(0, let text)? = try AgentAnswer.receive(from: other) else { return #expect(Bool(false)) }
    #expect(text.contains("unlocked"))
    try container.close()
  }

  /// Whoever hangs up may take the power next. Locked or not: what waits is stored at once, and not only when it is time.
  @Test(.timeLimit(.minutes(2)), arguments: [false, true])
  func `SIGHUP stores what waits in memory`(isLocked: Bool) throws {
    let container = try makeContainer()
    let vault = try held(container, at: folder("vault"), keyStore: folder("keys"))
    let server = try server(vault)
    let view = try container.view(of: .root, isReadOnly: false)
    if isLocked { container.lock(graceSeconds: 0) }
    _ = try view.makeFolder(Array("folder".utf8), in: view.root, NewNode(permissions: 0o700))
    if !isLocked {
      let (_, file) = try view.createFile(Array("file".utf8), in: view.root, NewNode(permissions: 0o600))
      try noise(50_000).withUnsafeBytes { try file.write($0, at: 0) }
    }
    #expect(try stored() == [])
    bell.ring(.signal(SignalRelay.hangUp))
    try server.step(waiting: .seconds(60))
    let expected = isLocked ? ["folder"] : ["file", "folder"]
    while try stored() != expected { sched_yield() }
    #expect(vault.present.state == .locked)
    view.end()
    try container.close()
  }

  /// The names that a copy of the vault and its key store has, which is made as a crash leaves it; nil where it was made amid a
  /// change.
  private func stored() throws -> [String]? {
    let copy = try TemporaryFolder()
    for name in ["keys", "vault"] {
      guard (try? FileManager.default.copyItem(atPath: folder(name), toPath: copy(name))) != nil else { return nil }
    }
    guard
      let vault = try? Vault.open(
        at: copy("vault"), keyStore: FileKeyStore(path: copy("keys")), passcode: { passcode })
    else { return nil }
    defer { try? vault.close() }
    return try vault.list(.root).map { String(decoding: $0.name, as: UTF8.self) }.sorted()
  }

  #if os(Linux)
    /// A device that hears of its company no more goes on for as long as the policy says.
    @Test(.enabled(if: Fuse.isThere, "/dev/fuse is not there, or not ours to open"), .timeLimit(.minutes(2)))
    func `a mount ends within a minute of when the policy has become too old`() async throws {
      let company = try await CompanyDesk(ownerActions: ["import", "mount"])
      let desk = company.desk
      try Kernel.mkdir(desk.path("mounted"))
      let place = try MountPoint(desk.path("mounted")).path
      let time = MovedTime()
      let container = try Container.open(
        at: desk.path("vault"), keyStore: FileKeyStore(path: desk.path("keys")), passcode: { passcode },
        sniffer: ContentTypeHelper(), time: time)
      let vault = try held(container, at: desk.path("vault"), keyStore: desk.path("keys"))
      let server = try server(vault)
      _ = try vault.mounts.mount(.root, at: place, isReadOnly: false)
      defer { vault.mounts.endAll() }
      try Kernel.makeFile(place + "/file", "content\n")
      let file = try Handle(place + "/file", O_RDONLY)
      // Young enough.
      #expect(vault.mounts.recheck() == [])
      #expect(try file.text == "content\n")

      time.pass(seconds: 400 * 86_400)
      #expect(throws: (any Error).self) { try container.checkMount() }
      // Not each time that the loop turns.
      clock.now += .seconds(59)
      try server.step(waiting: .zero)
      #expect(vault.mounts.places == [place])
      clock.now += .seconds(1)
      try server.step(waiting: .zero)
      while !vault.mounts.places.isEmpty { sched_yield() }
      #expect(throws: (any Error).self) { try file.read(1, at: 0) }
      #expect(try Kernel.names(place) == [])
      try container.close()
      #expect(try desk.done("ls").output == "file\n")
    }

    private final class MovedTime: TimeSource {
      private static let boot = [UInt8](repeating: 7, count: BootMoment.bootByteCount)
      private let passed = Mutex<Int64>(0)

      func now() -> Timestamp {
        let now = SystemTime().now()
        return Timestamp(seconds: now.seconds + passed.withLock { $0 }, nanoseconds: now.nanoseconds)
      }

      func sinceBoot() -> BootMoment { BootMoment(boot: Self.boot, seconds: UInt64(passed.withLock { $0 })) }

      func pass(seconds: Int64) { passed.withLock { $0 += seconds } }
    }
  #endif
}
