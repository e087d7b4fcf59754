internal import CofferCrypto
internal import CofferSystem
internal import NIOPosix
internal import Synchronization

/// Derives passwords one after the other, in a thread of its own: a derivation takes 128 MiB and a good part of a
/// second, so that callers without a name must not start as many as they like, nor hold up everyone else.
struct PasswordWorker: Sendable {
  /// log2 of scrypt's cost for new passwords.
  let costExponent: Int
  /// Takes as long as a real one, for an account that is not there.
  private let decoy: PasswordRecord

  private let line = Line()

  /// Whoever waits for the thread, and the thread. One for each server, of which a process has one, but for tests.
  private final class Line: Sendable {
    private static let maximumWaiting = 20
    private let waiting = Atomic<Int>(0)
    private let thread = NIOThreadPool(numberOfThreads: 1)

    init() { thread.start() }

    deinit { thread.shutdownGracefully { _ in } }

    func run<Value: Sendable>(_ body: @escaping @Sendable () throws -> Value) async throws -> Value {
      defer { waiting.subtract(1, ordering: .relaxed) }
      guard waiting.add(1, ordering: .relaxed).newValue <= Self.maximumWaiting else { throw HTTPProblem.busy }
      return try await thread.runIfActive(body)
    }
  }

  init(costExponent: Int) {
    self.costExponent = costExponent
    let derivation = try? PasscodeDerivation(costExponent: costExponent, salt: Randomness.bytes(16))
    guard let derivation else { preconditionFailure("a cost that the derivation does not take") }
    decoy = PasswordRecord(derivation: derivation, commitment: Randomness.bytes(32))
  }

  /// Whether `password` is that of `record`. Without a record the answer is no, and takes as long.
  func matches(_ password: SecretBytes, _ record: PasswordRecord?) async throws -> Bool {
    let record = record ?? decoy
    return try await line.run { try record.matches(password) }
  }

  func record(of password: SecretBytes) async throws -> PasswordRecord {
    let costExponent = costExponent
    return try await line.run { try PasswordRecord(password, costExponent: costExponent) }
  }

  func key(_ derivation: PasscodeDerivation, of passphrase: SecretBytes) async throws -> SecretKey {
    try await line.run { try derivation.key(for: passphrase) }
  }
}
