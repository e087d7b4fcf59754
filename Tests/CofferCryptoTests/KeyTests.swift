import CofferCrypto
import CofferSystem
import Testing

@Suite struct KeyTests {
  private func bytes(_ key: SecretKey) -> [UInt8] { key.secretBytes.withUnsafeBytes { Array($0) } }

  @Test func `a wrapped key unwraps under its own key only`() throws {
    for _ in 0..<50 {
      let (key, wrapping) = (SecretKey(), SecretKey())
      let wrapped = try key.wrapped(under: wrapping)
      #expect(wrapped.count == SecretKey.wrappedByteCount)
      #expect(try bytes(SecretKey(unwrapping: wrapped, under: wrapping)) == bytes(key))
      #expect(throws: CryptoError.notAuthentic) { try SecretKey(unwrapping: wrapped, under: SecretKey()) }
      var changed = wrapped
      changed[Int.random(in: changed.indices)] ^= UInt8.random(in: 1...255)
      #expect(throws: CryptoError.notAuthentic) { try SecretKey(unwrapping: changed, under: wrapping) }
      #expect(throws: CryptoError.notAuthentic) {
        try SecretKey(unwrapping: Array(wrapped.dropLast()), under: wrapping)
      }
    }
  }

  /// The points of orders 1, 2, 4 and 8, with either sign, and in the forms that add p to the coordinate.
  @Test(arguments: [
    "0000000000000000000000000000000000000000000000000000000000000000",
    "0100000000000000000000000000000000000000000000000000000000000000",
    "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
    "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
    "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
    "edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
    "eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
  ])
  func `a point of small order is no public key`(text: String) throws {
    var bytes = try #require([UInt8](hexadecimal: text))
    for sign in [UInt8(0), 0x80] {
      bytes[31] = bytes[31] & 0x7f | sign
      #expect(throws: CryptoError.invalid("public key")) { try VerifyingKey(bytes: bytes) }
    }
  }

  /// RFC 3394, section 4.6: 256 bits of key data with a 256-bit key.
  @Test func `wrapping gives the bytes of RFC 3394`() throws {
    func key(_ text: String) throws -> SecretKey {
      try SecretKey([UInt8](hexadecimal: text)!.withUnsafeBytes { SecretBytes(copying: $0) })
    }
    let wrapped = try key("00112233445566778899AABBCCDDEEFF000102030405060708090A0B0C0D0E0F").wrapped(
      under: key("000102030405060708090A0B0C0D0E0F101112131415161718191A1B1C1D1E1F"))
    #expect(wrapped.hexadecimal == "28c9f404c4b810f4cbccb35cfb87f8263f5786e2d80ed326cbc7f0e71a99f43bfb988b9b7a02dd21")
  }

  @Test func `agreement wraps to the public half and unwraps with the private one`() throws {
    for _ in 0..<20 {
      let (agreement, key) = (AgreementKey(), SecretKey())
      let wrapped = try AgreementKey.wrap(key, to: agreement.publicKey)
      #expect(try bytes(agreement.unwrap(wrapped)) == bytes(key))
      #expect(try bytes(AgreementKey(agreement.secretKey).unwrap(wrapped)) == bytes(key))
      // Giving the private half away leaves it where it is.
      #expect(try bytes(agreement.unwrap(wrapped)) == bytes(key))
      #expect(throws: CryptoError.notAuthentic) { try AgreementKey().unwrap(wrapped) }
      var changed = wrapped
      changed[Int.random(in: changed.indices)] ^= 0x10
      #expect(throws: CryptoError.notAuthentic) { try agreement.unwrap(changed) }
    }
    // A point of small order gives the same shared secret with every key: refused.
    #expect(throws: CryptoError.self) { try AgreementKey.wrap(SecretKey(), to: [UInt8](repeating: 0, count: 32)) }
  }

  /// The expected bytes were computed with another implementation of HMAC-SHA256, by RFC 5869 and RFC 2104.
  @Test func `derivation and authentication codes give the bytes of the standards`() throws {
    let key = try SecretKey((0..<32).map { UInt8($0) }.withUnsafeBytes { SecretBytes(copying: $0) })
    #expect(
      bytes(key.derived("records", context: [1, 2, 3])).hexadecimal
        == "e01435be3208b998df30343a8374258d0455fcdf9ca3b08da234e3150adedcac")
    let code = "6297b77508a1a30ea4dfadd8f847c31b49aba45de10a79daf721d3f7ec112a24"
    let message = Array("message".utf8)
    #expect(MessageAuthentication.code(for: message, key: key).hexadecimal == code)
    let hash = KeyedHash(key: key)
    #expect(hash.code(for: Array("another".utf8)).hexadecimal != code)
    #expect(hash.code(for: message).hexadecimal == code)
    #expect(MessageAuthentication.isValid(hash.code(for: message), for: message, key: key))
  }

  @Test func `derived keys differ by label, context and key, and a label cannot run into its context`() throws {
    let key = SecretKey()
    let derived = [
      key.derived("a"), key.derived("b"), key.derived("a", context: [98]), key.derived("ab"),
      SecretKey().derived("a"), key.combined(with: [key], "a", context: []),
    ].map(bytes)
    #expect(Set(derived).count == derived.count)
    #expect(bytes(key.derived("a")) == derived[0])
    #expect(key.commitment != bytes(key) && key.commitment == key.commitment)
    #expect(SecretKey().commitment != key.commitment)
  }

  @Test func `passcode derivation keeps to its bounds and depends on everything`() throws {
    let salt = Randomness.bytes(16)
    for (exponent, block, parallel) in [(13, 8, 1), (21, 8, 1), (14, 7, 1), (14, 8, 0), (14, 8, 5), (-1, 8, 1)] {
      #expect(throws: CryptoError.self) {
        try PasscodeDerivation(costExponent: exponent, blockSize: block, parallelism: parallel, salt: salt)
      }
    }
    #expect(throws: CryptoError.self) { try PasscodeDerivation(costExponent: 14, salt: Randomness.bytes(15)) }
    func derive(_ text: String, _ salt: [UInt8]) throws -> [UInt8] {
      let passcode = Array(text.utf8).withUnsafeBytes { SecretBytes(copying: $0) }
      return bytes(try PasscodeDerivation(costExponent: 14, salt: salt).key(for: passcode))
    }
    #expect(try derive("a", salt) == derive("a", salt))
    #expect(try derive("a", salt) != derive("b", salt))
    #expect(try derive("a", salt) != derive("a", Randomness.bytes(16)))
  }

  @Test func `signatures verify for their message and key only`() throws {
    let key = SigningKey()
    let message = Randomness.bytes(100)
    let signature = key.signature(for: message)
    #expect(key.verifyingKey.isValid(signature, for: message))
    #expect(try SigningKey(seed: key.seed).verifyingKey == key.verifyingKey)
    // To have looked at the seed changed nothing in it.
    #expect(try SigningKey(seed: key.seed).verifyingKey == key.verifyingKey)
    #expect(key.verifyingKey.isValid(key.signature(for: message), for: message))
    #expect(!SigningKey().verifyingKey.isValid(signature, for: message))
    #expect(!key.verifyingKey.isValid(signature, for: message + [0]))
    for index in signature.indices {
      var changed = signature
      changed[index] ^= 1
      #expect(!key.verifyingKey.isValid(changed, for: message))
    }
  }

  @Test func `a secret shows nothing of itself`() {
    let secret = Array("hunter2hunter2hunter2hunter2hunt".utf8).withUnsafeBytes { SecretBytes(copying: $0) }
    for text in ["\(secret)", String(reflecting: secret), "\((try? SecretKey(secret)) as Any)"] {
      #expect(!text.contains("hunter2"))
    }
    var dumped = ""
    dump(try? SecretKey(secret), to: &dumped)
    dump(secret, to: &dumped)
    dump(SigningKey(), to: &dumped)
    #expect(!dumped.contains("hunter2") && !dumped.contains("104"))
  }
}
