internal import CofferAPI
internal import CofferCrypto
internal import Foundation

/// How a person's authenticator is told a secret: as text to type, and as what a QR code holds.
struct AuthenticatorText {
  let secret: String
  let uri: String

  init(secret bytes: [UInt8], account: String) {
    secret = Base32.encode(bytes).uppercased()
    let label = "Coffer:\(account)".addingPercentEncoding(withAllowedCharacters: .alphanumerics) ?? "Coffer"
    uri =
      "otpauth://totp/\(label)?secret=\(secret)&issuer=Coffer&digits=\(OneTimeCode.digits)&period=\(OneTimeCode.step)"
  }
}
