import CofferSystem
import Testing

@testable import CofferCrypto

/// What others made opens here, and what is made here has their bytes.
@Suite struct RNCryptorVectorTests {
  @Test func `no vector was lost on the way`() {
    #expect(RNCryptorVector.all("version-3-password.txt").count == 6)
    #expect(RNCryptorVector.all("version-3-keys.txt").count == 4)
    #expect(RNCryptorVector.all("version-2-password.txt").count == 3)
  }

  @Test(arguments: RNCryptorVector.all("version-3-password.txt")) func `version 3 with a password`(
    vector: RNCryptorVector
  ) throws {
    let password = RNCryptorBytes.password(vector.secret)
    #expect(try RNCryptorBytes.opened(vector.data, password) == vector.plaintext)
    let header = try RNCryptorHeader(Array(vector.data.prefix(34)))
    #expect(try RNCryptorBytes.sealed(vector.plaintext, password, header: header) == vector.data)
  }

  @Test(arguments: RNCryptorVector.all("version-3-keys.txt")) func `version 3 with keys`(
    vector: RNCryptorVector
  ) throws {
    let keys = try RNCryptorBytes.keys(try #require([UInt8](hexadecimal: vector.secret)))
    #expect(try RNCryptorBytes.opened(vector.data, keys) == vector.plaintext)
    let header = try RNCryptorHeader(Array(vector.data.prefix(18)))
    #expect(try RNCryptorBytes.sealed(vector.plaintext, keys, header: header) == vector.data)
  }

  /// The password is cut to as many bytes as it has units of UTF-16; only its beginning counts.
  @Test(arguments: RNCryptorVector.all("version-2-password.txt")) func `version 2 with a password`(
    vector: RNCryptorVector
  ) throws {
    let password = RNCryptorBytes.password(vector.secret)
    #expect(try RNCryptorBytes.opened(vector.data, password) == vector.plaintext)
    // As version 3 the same password is a longer one, and the version is authenticated, too.
    #expect(throws: RNCryptorError.notAuthentic) {
      try RNCryptorBytes.opened([3] + vector.data.dropFirst(), password)
    }
  }
}
