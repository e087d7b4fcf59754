public import CofferPolicy

/// Why a device could not join its company or refresh its policy. It holds no code, token, key or address.
public enum ClientError: Error, Hashable, Sendable, CustomStringConvertible {
  /// The address is not `https://HOST[:PORT][/PATH]`.
  case badAddress
  /// Plain HTTP to another machine.
  case insecureAddress
  /// The text is not an enrolment code.
  case badCode
  /// The certificate to pin is not one certificate in PEM or DER.
  case badCertificate
  /// No connection, or no complete answer in time.
  case unreachable
  /// No TLS connection, or the certificate is not to be trusted.
  case untrusted
  /// The server sends the device elsewhere, which it never follows.
  case redirected(status: Int)
  /// The answer is larger than any that Coffer's server gives.
  case oversizedAnswer
  /// The answer is not one that Coffer's server gives; its HTTP status.
  case unexpectedAnswer(status: Int)
  /// The server does not know the code, or it was used, or it has expired.
  case codeRefused
  /// The server does not let this device in.
  case deviceRefused
  /// What the server sent is not what the company signed for this device.
  case documentRefused(PolicyRefusal)
  /// The device could not store or do what it was told; its own log says more.
  case deviceFailed

  /// What kind of failure it is, for an exit code.
  public enum Kind: Hashable, Sendable {
    /// What was typed cannot be right.
    case usage
    /// The server is not there, or not to be trusted as a server.
    case unavailable
    /// The server refused the device, or the device refused what it was sent.
    case refused
  }

  public var kind: Kind {
    switch self {
    case .badAddress, .badCode, .badCertificate: .usage
    case .unreachable, .untrusted, .redirected, .oversizedAnswer, .unexpectedAnswer: .unavailable
    case .insecureAddress, .codeRefused, .deviceRefused, .documentRefused, .deviceFailed: .refused
    }
  }

  public var description: String {
    switch self {
    case .badAddress: "The server's address must be https://HOST[:PORT][/PATH], without a user, a query or a fragment."
    case .insecureAddress: "Plain HTTP is for this machine only: use an https:// address."
    case .badCode: "This is not an enrolment code. It begins with COF1- and has three parts; copy all of it."
    case .badCertificate: "The certificate to pin must be one certificate in PEM or DER."
    case .unreachable: "The server cannot be reached, or did not answer in time. Try again later."
    case .untrusted:
      "The connection to the server is not secure: its certificate is self-signed, expired, for another host, or not "
        + "the pinned one. Ask your administrator for the server's certificate."
    case .redirected(let status):
      "The server answered with a redirect (\(status)), which is never followed. "
        + "Ask your administrator for the server's own address."
    case .oversizedAnswer: "The server's answer is too large to be one of Coffer's."
    case .unexpectedAnswer(let status): "The server's answer (\(status)) is not one of Coffer's. Check the address."
    case .codeRefused: "The enrolment code is unknown, used or expired. Ask your administrator for a new one."
    case .deviceRefused: "The server no longer lets this device in. Ask your administrator to enrol it again."
    case .documentRefused(let refusal): "What the server sent was refused. \(refusal)"
    case .deviceFailed: "This device could not store what its company told it. Is its disk full?"
    }
  }
}
