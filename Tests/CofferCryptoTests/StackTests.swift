#if canImport(Glibc)
  import CofferSystem
  import Glibc
  import Testing

  @testable import CofferCrypto

  /// What a thread's stack still has of keys when their use is over. A library leaves the keys that it expands in its frames, and
  /// a thread that then sleeps keeps them behind a lock.
  @Suite struct StackTests {
    private let key = SecretKey()

    private static func bytes(_ key: SecretKey) -> [UInt8] { key.secretBytes.withUnsafeBytes { Array($0) } }
    private static func bytes(_ secret: SecretBytes) -> [UInt8] { secret.withUnsafeBytes { Array($0) } }

    private final class Work {
      let body: () throws -> Void
      let storesRegisters: Bool
      var error: (any Error)?

      init(_ body: @escaping () throws -> Void, storesRegisters: Bool) {
        (self.body, self.storesRegisters) = (body, storesRegisters)
      }

      func run() {
        // Whatever other signal came by would store the registers as well, at any moment.
        var signals = sigset_t()
        sigfillset(&signals)
        sigdelset(&signals, SIGURG)
        pthread_sigmask(SIG_BLOCK, &signals, nil)
        do { try body() } catch { self.error = error }
        // The kernel stores all of them on the stack for who handles it.
        if storesRegisters { raise(SIGURG) }
      }
    }

    /// A thread's own stack, when it has run `body`.
    private func withStack<Result>(
      after body: @escaping () throws -> Void, storesRegisters: Bool = false, _ look: (UnsafeRawBufferPointer) -> Result
    ) throws -> Result {
      signal(SIGURG) { _ in }
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
      let work = Unmanaged.passRetained(Work(body, storesRegisters: storesRegisters))
      let code = pthread_create(
        &thread, attributes,
        { work in
          Unmanaged<Work>.fromOpaque(work!).takeUnretainedValue().run()
          return nil
        }, work.toOpaque())
      #expect(code == 0)
      pthread_join(thread, nil)
      if let error = work.takeRetainedValue().error { throw error }
      return look(UnsafeRawBufferPointer(start: stack, count: size))
    }

    private func count(of secret: [UInt8], in bytes: UnsafeRawBufferPointer) -> Int {
      var (count, place) = (0, 0)
      while place + secret.count <= bytes.count,
        let found = memchr(bytes.baseAddress! + place, CInt(secret[0]), bytes.count - place - secret.count + 1)
      {
        if memcmp(found, secret, secret.count) == 0 { count += 1 }
        place = UnsafeRawPointer(found) - bytes.baseAddress! + 1
      }
      return count
    }

    private func expectNone(
      of secrets: [[UInt8]], after body: @escaping () throws -> Void, at place: SourceLocation = #_sourceLocation
    ) throws {
      // A schedule that decrypts has a half of the key as it is, in another place; and so has a register.
      let halves = secrets.flatMap { [Array($0.prefix(16)), Array($0.suffix(16))] }
      // Once before: where a function of a library is called for the first time, the loader looks it up, and stores all registers
      // meanwhile.
      try body()
      for storesRegisters in [false, true] {
        let counts = try withStack(after: body, storesRegisters: storesRegisters) { stack in
          halves.map { count(of: $0, in: stack) }
        }
        #expect(
          counts.allSatisfy { $0 == 0 }, "\(counts), registers stored: \(storesRegisters)", sourceLocation: place)
      }
    }

    @Test func `the search finds what lies there`() throws {
      let secret = Self.bytes(key)
      let found = try withStack {
        withUnsafeTemporaryAllocation(byteCount: 512, alignment: 16) { $0.copyBytes(from: secret) }
      } _: {
        count(of: secret, in: $0)
      }
      #expect(found > 0)
    }

    @Test func `a function's frame is overwritten`() throws {
      let secret = Self.bytes(key)
      try expectNone(of: [secret]) {
        clearingStack {
          withUnsafeTemporaryAllocation(byteCount: 512, alignment: 16) { $0.copyBytes(from: secret) }
        }
      }
    }

    @Test func wrapping() throws {
      let other = SecretKey()
      let (key, wrapped) = (key, try key.wrapped(under: other))
      let secrets = [Self.bytes(key), Self.bytes(other)]
      try expectNone(of: secrets) { _ = try key.wrapped(under: other) }
      try expectNone(of: secrets) { _ = try SecretKey(unwrapping: wrapped, under: other) }
      try expectNone(of: secrets) {
        #expect(throws: CryptoError.notAuthentic) { try SecretKey(unwrapping: wrapped, under: key) }
      }
    }

    @Test func deriving() throws {
      let key = key
      var extracted = [UInt8](repeating: 0, count: Digest.byteCount)
      extracted.withUnsafeMutableBytes { code in
        key.secretBytes.withUnsafeBytes { message in
          Array("coffer".utf8).withUnsafeBytes { CopyingCode.write(code, for: message, key: $0) }
        }
      }
      let secrets = [
        Self.bytes(key), Self.bytes(key.derived("stack")), Self.bytes(key.combined(with: [key], "stack", context: [])),
        extracted,
        // As HMAC takes a key, with which anybody has it.
        Self.bytes(key).map { $0 ^ 0x36 }, Self.bytes(key).map { $0 ^ 0x5c },
        extracted.map { $0 ^ 0x36 }, extracted.map { $0 ^ 0x5c },
      ]
      let code = MessageAuthentication.code(for: [1, 2, 3], key: key)
      try expectNone(of: secrets) { _ = key.derived("stack") }
      try expectNone(of: secrets) { _ = key.combined(with: [key], "stack", context: []) }
      try expectNone(of: secrets) { _ = key.commitment }
      try expectNone(of: secrets) { _ = MessageAuthentication.code(for: [1, 2, 3], key: key) }
      try expectNone(of: secrets) { #expect(MessageAuthentication.isValid(code, for: [1, 2, 3], key: key)) }
      try expectNone(of: secrets) { _ = KeyedHash(key: key) }
    }

    @Test func sealing() throws {
      let (key, text) = (key, [UInt8]("what is sealed, and more than a key's bytes".utf8))
      let sealed = try Sealing.seal(text, key: key, authenticating: [])
      try expectNone(of: [Self.bytes(key)]) { _ = try Sealing.seal(text, key: key, authenticating: []) }
      try expectNone(of: [Self.bytes(key), text]) { _ = try Sealing.open(sealed, key: key, authenticating: []) }
    }

    @Test(arguments: [100, 4096, 16384])
    func `sealing of blocks`(_ byteCount: Int) throws {
      let key = key
      let text = [UInt8](String(repeating: "what is sealed. ", count: byteCount / 16).utf8)
      let sealer = BlockSealer(fileKey: key, page: 0, context: [])
      var (ciphertext, opened) = (text, text)
      let seal = try text.withUnsafeBytes { text in
        try ciphertext.withUnsafeMutableBytes { try sealer.seal(text, block: 1, into: $0) }
      }
      let secrets = [
        Self.bytes(key),
        Self.bytes(KeyDerivation(from: key).key("blocks", context: [UInt8](repeating: 0, count: 8))),
      ]
      try expectNone(of: secrets) { _ = BlockSealer(fileKey: key, page: 0, context: []) }
      try expectNone(of: secrets) {
        try text.withUnsafeBytes { text in
          try opened.withUnsafeMutableBytes { _ = try sealer.seal(text, block: 1, into: $0) }
        }
      }
      try expectNone(of: secrets) {
        try ciphertext.withUnsafeBytes { ciphertext in
          try opened.withUnsafeMutableBytes { try sealer.open(ciphertext, block: 1, seal: seal, into: $0) }
        }
      }
      #expect(opened == text)
    }

    @Test func `keys of curves`() throws {
      let (key, agreement, hybrid, signing) = (key, AgreementKey(), HybridKey(), SigningKey())
      let wrapped = try AgreementKey.wrap(key, to: agreement.publicKey)
      let box = try hybrid.publicKey.seal(key, info: [], authenticating: [])
      let (stored, seed) = (hybrid.secretBytes, signing.seed)
      let secrets = [Self.bytes(key), Self.bytes(agreement.secretKey), Self.bytes(stored), Self.bytes(seed)]
      try expectNone(of: secrets) { _ = try AgreementKey.wrap(key, to: agreement.publicKey) }
      try expectNone(of: secrets) { _ = try agreement.unwrap(wrapped) }
      try expectNone(of: secrets) { _ = agreement.secretKey }
      try expectNone(of: secrets) { _ = try hybrid.publicKey.seal(key, info: [], authenticating: []) }
      try expectNone(of: secrets) { _ = try hybrid.open(box, info: [], authenticating: []) }
      try expectNone(of: secrets) { _ = try HybridKey(stored).publicKey }
      try expectNone(of: secrets) { _ = signing.signature(for: [1, 2, 3]) }
      try expectNone(of: secrets) { _ = try SigningKey(seed: seed).verifyingKey }
    }

    @Test func `what a person knows`() throws {
      let passcode = key.secretBytes
      let derivation = try PasscodeDerivation(costExponent: 14, salt: [UInt8](repeating: 1, count: 16))
      let derived = Self.bytes(try derivation.key(for: passcode))
      try expectNone(of: [Self.bytes(key), derived]) { _ = try derivation.key(for: passcode) }
      let code = try OneTimeCode(secret: passcode)
      try expectNone(of: [Self.bytes(key)]) { _ = code.code(step: 1) }
      let recovery = RecoveryKey()
      let text = recovery.text
      try expectNone(of: [Self.bytes(text)]) { _ = try RecoveryKey(text: text) }
    }

    @Test func `other programs' format`() throws {
      let keys = try RNCryptorKeys(file: SecretBytes(count: 64) { Randomness.fill($0) })
      let secrets = [Self.bytes(keys.encryption), Self.bytes(keys.authentication)]
      try expectNone(of: secrets) {
        var sealer = try RNCryptorSealer(secret: .keys(keys))
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 1024, alignment: 16)
        defer { buffer.deallocate() }
        _ = sealer.seal(buffer, count: 1000, isLast: true)
      }
    }
  }
#endif
