internal import CofferPolicy
internal import CofferSystem

/// What people may call themselves and their things.
extension Administration {
  static func isName(_ text: String) -> Bool { PolicyText.isName(text) }

  /// Something before and after one `@`. Only a letter that arrives proves an address.
  static func isAddress(_ text: String) -> Bool {
    let parts = text.utf8.split(separator: UInt8(ascii: "@"), omittingEmptySubsequences: false)
    return parts.count == 2 && parts.allSatisfy { !$0.isEmpty } && text.utf8.count <= 254
      && text.utf8.allSatisfy { $0 > 32 && $0 != 127 } && PolicyText.isName(text)
  }

  static func demandLength(of password: SecretBytes) throws(ServerError) {
    guard (12...1024).contains(password.count) else { throw .invalid("a password has 12 to 1024 bytes") }
  }

  /// A new password from a request.
  static func password(_ text: String) throws -> SecretBytes {
    let secret = PolicyServer.secret(text)
    do { try demandLength(of: secret) } catch { throw HTTPProblem.invalid("password", "has 12 to 1024 bytes") }
    return secret
  }
}
