extension Sequence where Element == UInt8 {
  /// Lower-case hexadecimal digits, two a byte.
  public var hexadecimal: String {
    let digits = Array("0123456789abcdef".utf8)
    var text: [UInt8] = []
    for byte in self {
      text.append(digits[Int(byte >> 4)])
      text.append(digits[Int(byte & 15)])
    }
    return String(decoding: text, as: UTF8.self)
  }
}

extension Array where Element == UInt8 {
  /// Parses lower- or upper-case hexadecimal digits; nil if any other character or an odd number of them stands there.
  public init?(hexadecimal text: some StringProtocol) {
    let digits = [UInt8](text.utf8)
    guard digits.count.isMultiple(of: 2) else { return nil }
    func value(_ digit: UInt8) -> UInt8? {
      switch digit {
      case 48...57: digit - 48
      case 65...70: digit - 55
      case 97...102: digit - 87
      default: nil
      }
    }
    self = []
    reserveCapacity(digits.count / 2)
    for index in stride(from: 0, to: digits.count, by: 2) {
      guard let high = value(digits[index]), let low = value(digits[index + 1]) else { return nil }
      append(high << 4 | low)
    }
  }
}
