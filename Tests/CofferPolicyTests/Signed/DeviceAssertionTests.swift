import CofferCrypto
import CofferPolicy
import Testing

struct DeviceAssertionTests {
  let key = SigningKey()

  func verify(
    _ change: (inout DeviceAssertion) -> Void = { _ in }, now: Int64 = 1_000, signer: SigningKey? = nil
  ) throws -> DeviceAssertion {
    var claims = DeviceAssertion(device: "device-1", tenant: "acme", now: 1_000, id: "abc")
    change(&claims)
    return try DeviceAssertion(
      verifying: claims.signed(with: signer ?? key), device: "device-1", tenant: "acme", key: key.verifyingKey, now: now
    )
  }

  @Test func `is accepted while it holds, with some tolerance`() throws {
    #expect(try verify().jti == "abc")
    #expect(try verify(now: 941).exp == 1_120)
    #expect(try verify(now: 1_179).iat == 1_000)
    #expect(throws: PolicyRefusal.expired(.assertion)) { try verify(now: 939) }
    #expect(throws: PolicyRefusal.expired(.assertion)) { try verify(now: 1_180) }
  }

  @Test func `is refused for anything else`() throws {
    #expect(throws: PolicyRefusal.otherTenant) { try verify { $0.aud = "globex" } }
    #expect(throws: PolicyRefusal.otherAudience) { try verify { $0.sub = "device-2" } }
    #expect(throws: PolicyRefusal.otherAudience) { try verify { $0.iss = "device-2" } }
    #expect(throws: PolicyRefusal.malformed("assertion")) { try verify { $0.exp = $0.iat + 301 } }
    #expect(throws: PolicyRefusal.malformed("assertion")) { try verify { $0.exp = $0.iat } }
    #expect(throws: PolicyRefusal.malformed("assertion")) {
      try verify {
        $0.iat = .min
        $0.exp = .max
      }
    }
    #expect(throws: PolicyRefusal.malformed("assertion")) { try verify { $0.jti = "" } }
    #expect(throws: PolicyRefusal.unknownKey(.assertion)) { try verify(signer: SigningKey()) }
  }

  @Test func `tells whose it claims to be`() throws {
    let text = try DeviceAssertion(device: "d", tenant: "t", now: 0, id: "x").signed(with: key)
    #expect(try SignedDocument.claimedKeyID(text, as: .assertion) == key.verifyingKey.keyID)
  }
}
