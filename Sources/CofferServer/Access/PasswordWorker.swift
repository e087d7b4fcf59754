internal import CofferCrypto
internal import CofferSystem
internal import NIOPosix

/// Derives passwords one after the other, in a thread of its own: a derivation takes 128 MiB and a good part of a
/// second, so that callers without a name must not start as many as they like, nor hold up everyone else.
struct PasswordWorker: Sendable {
  /// log2 of scrypt's cost for new passwords.
  let costExponent: Int
  /// Takes as long as a real one, for an account that is not there.
  private let decoy: PasswordRecord

  private let line = FairLine()
  private let thread = Thread()

  /// One for each server, of which a process has one, but for tests.
  private final class Thread: Sendable {
    let pool = NIOThreadPool(numberOfThreads: 1)

    init() { pool.start() }

    deinit { pool.shutdownGracefully { _ in } }
  }

  init(costExponent: Int) {
    self.costExponent = costExponent
    let derivation = try? PasscodeDerivation(costExponent: costExponent, salt: Randomness.bytes(16))
    guard let derivation else { preconditionFailure("a cost that the derivation does not take") }
    decoy = PasswordRecord(derivation: derivation, commitment: Randomness.bytes(32))
  }

  /// A second has passed: who has waited for too long is told to come again.
  func tick() { line.tick() }

  /// Whether `password` is that of `record`. Without a record the answer is no, and takes as long.
  func matches(
    _ password: SecretBytes, _ record: PasswordRecord?, for party: FairLine.Party
  ) async throws -> Bool {
    let record = record ?? decoy
    return try await run(party) { try record.matches(password) }
  }

  func record(of password: SecretBytes, for party: FairLine.Party) async throws -> PasswordRecord {
    let costExponent = costExponent
    return try await run(party) { try PasswordRecord(password, costExponent: costExponent) }
  }

  func key(
    _ derivation: PasscodeDerivation, of passphrase: SecretBytes, for party: FairLine.Party
  ) async throws -> SecretKey {
    try await run(party) { try derivation.key(for: passphrase) }
  }

  private func run<Value: Sendable>(
    _ party: FairLine.Party, _ body: @escaping @Sendable () throws -> Value
  ) async throws -> Value {
    let pool = thread.pool
    return try await line.run(party) { try await pool.runIfActive(body) }
  }
}
