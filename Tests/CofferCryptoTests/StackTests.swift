#if canImport(Glibc)
  import CofferSystem
  import Glibc
  import Testing

  @testable import CofferCrypto

  /// What a thread's stack still has of keys when their use is over. A library leaves the keys that it expands in its frames, and
  /// a thread that then sleeps keeps them behind a lock.
  @Suite struct StackTests {
    private func bytes(_ key: SecretKey) -> [UInt8] { key.secretBytes.withUnsafeBytes { Array($0) } }

    private final class Work {
      let body: () -> Void
      init(_ body: @escaping () -> Void) { self.body = body }
    }

    /// How often `secret` lies on the stack of a thread that has run `body`.
    private func count(of secret: [UInt8], after body: @escaping () -> Void) throws -> Int {
      let size = 1 << 20
      let stack = try #require(mmap(nil, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))
      defer { munmap(stack, size) }
      let attributes = UnsafeMutablePointer<pthread_attr_t>.allocate(capacity: 1)
      pthread_attr_init(attributes)
      defer {
        pthread_attr_destroy(attributes)
        attributes.deallocate()
      }
      #expect(pthread_attr_setstack(attributes, stack, size) == 0)
      var thread = pthread_t()
      let work = Unmanaged.passRetained(Work(body))
      let code = pthread_create(
        &thread, attributes,
        { work in
          Unmanaged<Work>.fromOpaque(work!).takeUnretainedValue().body()
          return nil
        }, work.toOpaque())
      #expect(code == 0)
      pthread_join(thread, nil)
      work.release()
      let left = UnsafeRawBufferPointer(start: stack, count: size)
      return (0...(size - secret.count)).count { place in
        left[place] == secret[0] && left[place..<place + secret.count].elementsEqual(secret)
      }
    }

    @Test func `the search finds what lies there`() throws {
      let key = SecretKey()
      let secret = bytes(key)
      let found = try count(of: secret) {
        withUnsafeTemporaryAllocation(byteCount: 512, alignment: 16) { $0.copyBytes(from: secret) }
      }
      #expect(found > 0)
    }

    private let key = SecretKey()

    private func expectNone(
      of secrets: [[UInt8]], after body: @escaping () -> Void, at place: SourceLocation = #_sourceLocation
    ) throws {
      // A schedule that decrypts has a half of the key as it is, in another place.
      for half in secrets.flatMap({ [Array($0.prefix(16)), Array($0.suffix(16))] }) {
        #expect(try count(of: half, after: body) == 0, sourceLocation: place)
      }
    }

    @Test func `a function's frame is overwritten`() throws {
      let secret = bytes(key)
      try expectNone(of: [secret]) {
        clearingStack {
          withUnsafeTemporaryAllocation(byteCount: 512, alignment: 16) { $0.copyBytes(from: secret) }
        }
      }
    }

    @Test func wrapping() throws {
      let other = SecretKey()
      let (key, wrapped) = (key, try key.wrapped(under: other))
      let secrets = [bytes(key), bytes(other)]
      try expectNone(of: secrets) { _ = try? key.wrapped(under: other) }
      try expectNone(of: secrets) { _ = try? SecretKey(unwrapping: wrapped, under: other) }
      try expectNone(of: secrets) { _ = try? SecretKey(unwrapping: wrapped, under: key) }
    }

    @Test func deriving() throws {
      let key = key
      let secrets = [bytes(key), bytes(key.derived("stack")), bytes(key.combined(with: [key], "stack", context: []))]
      try expectNone(of: secrets) { _ = key.derived("stack") }
      try expectNone(of: secrets) { _ = key.combined(with: [key], "stack", context: []) }
      try expectNone(of: secrets) { _ = key.commitment }
      try expectNone(of: secrets) { _ = MessageAuthentication.code(for: [1, 2, 3], key: key) }
    }

    @Test func sealing() throws {
      let (key, text) = (key, [UInt8]("what is sealed".utf8))
      let sealed = try Sealing.seal(text, key: key, authenticating: [])
      try expectNone(of: [bytes(key)]) { _ = try? Sealing.seal(text, key: key, authenticating: []) }
      try expectNone(of: [bytes(key), text + text]) { _ = try? Sealing.open(sealed, key: key, authenticating: []) }
    }

    @Test func `sealing of blocks`() throws {
      let key = key
      let text = [UInt8](String(repeating: "what is sealed. ", count: 256).utf8)
      let sealer = BlockSealer(fileKey: key, page: 0, context: [])
      let sealed = try text.withUnsafeBytes { try sealer.seal($0, block: 1) }
      let secrets = [
        bytes(key), bytes(KeyDerivation(from: key).key("blocks", context: [UInt8](repeating: 0, count: 8))),
      ]
      try expectNone(of: secrets) { _ = BlockSealer(fileKey: key, page: 0, context: []) }
      try expectNone(of: secrets) { text.withUnsafeBytes { _ = try? sealer.seal($0, block: 1) } }
      try expectNone(of: secrets + [Array(text[..<32])]) {
        sealed.withCiphertext { _ = try? sealer.open($0, block: 1, seal: sealed.seal) }
      }
    }

    @Test func `keys of curves`() throws {
      let (key, agreement, hybrid, signing) = (key, AgreementKey(), HybridKey(), SigningKey())
      let wrapped = try AgreementKey.wrap(key, to: agreement.publicKey)
      let box = try hybrid.publicKey.seal(key, info: [], authenticating: [])
      let (stored, seed) = (hybrid.secretBytes, signing.seed)
      let secrets = [bytes(key), bytes(agreement.secretKey)] + [stored, seed].map { $0.withUnsafeBytes { Array($0) } }
      try expectNone(of: secrets) { _ = try? AgreementKey.wrap(key, to: agreement.publicKey) }
      try expectNone(of: secrets) { _ = try? agreement.unwrap(wrapped) }
      try expectNone(of: secrets) { _ = agreement.secretKey }
      try expectNone(of: secrets) { _ = try? hybrid.publicKey.seal(key, info: [], authenticating: []) }
      try expectNone(of: secrets) { _ = try? hybrid.open(box, info: [], authenticating: []) }
      try expectNone(of: secrets) { _ = try? HybridKey(stored).publicKey }
      try expectNone(of: secrets) { _ = signing.signature(for: [1, 2, 3]) }
      try expectNone(of: secrets) { _ = try? SigningKey(seed: seed).verifyingKey }
    }

    @Test func `what a passcode gives`() throws {
      let passcode = key.secretBytes
      let derivation = try PasscodeDerivation(costExponent: 14, salt: [UInt8](repeating: 1, count: 16))
      let secrets = [bytes(key), bytes(try derivation.key(for: passcode))]
      try expectNone(of: secrets) { _ = try? derivation.key(for: passcode) }
    }
  }
#endif
