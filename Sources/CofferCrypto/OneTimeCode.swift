public import CofferSystem
internal import Crypto
internal import Foundation

/// Time-based one-time codes (RFC 6238, on HOTP of RFC 4226): HMAC-SHA1, six digits, steps of 30 seconds, because that is
/// what people's authenticators compute. SHA-1 is no weakness here: nobody chooses what is hashed.
public struct OneTimeCode: Sendable {
  public static let secretByteCount = 20
  public static let digits = 6
  /// Seconds.
  public static let step: Int64 = 30
  /// How many steps before and after the present one are accepted, for clocks that differ and fingers that are slow.
  public static let tolerance: Int64 = 1

  private let secret: SecretBytes

  /// Throws `CryptoError.invalid` for a secret of less than 16 or more than 64 bytes.
  public init(secret: SecretBytes) throws(CryptoError) {
    guard (16...64).contains(secret.count) else { throw .invalid("one-time code secret") }
    self.secret = secret
  }

  /// The step that `time`, in seconds since 1970, lies in.
  public static func step(at time: Int64) -> Int64 { max(0, time) / step }

  /// The code of one step: six digits.
  public func code(step: Int64) -> String {
    let counter = withUnsafeBytes(of: UInt64(max(0, step)).bigEndian) { Array($0) }
    let code = clearingStack {
      secret.withUnsafeBytes { bytes in
        Array(HMAC<Insecure.SHA1>.authenticationCode(for: counter, using: SymmetricKey(data: bytes)))
      }
    }
    let offset = Int(code[code.count - 1] & 15)
    let number = code[offset..<offset + 4].reduce(UInt32(0)) { $0 << 8 | UInt32($1) } & 0x7fff_ffff
    let text = String(number % 1_000_000)
    return String(repeating: "0", count: Self.digits - text.utf8.count) + text
  }

  /// The step whose code `text` is, of those that are accepted at `time` and come after `last`; nil when it is none.
  ///
  /// Whoever accepts a code keeps its step as the next `last`, so that a code that was seen is worth nothing.
  public func acceptedStep(_ text: String, at time: Int64, after last: Int64) -> Int64? {
    let (given, now) = (Array(text.utf8), Self.step(at: time))
    var accepted: Int64?
    for step in max(0, now - Self.tolerance)...(now + Self.tolerance)
    where equalInConstantTime(Array(code(step: step).utf8), given) && step > last { accepted = accepted ?? step }
    return accepted
  }
}
