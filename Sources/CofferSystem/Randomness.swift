/// Random bytes from the system's generator.
public enum Randomness {
  public static func bytes(_ count: Int) -> [UInt8] {
    var generator = SystemRandomNumberGenerator()
    var result = [UInt8](repeating: 0, count: count)
    var index = 0
    while index < count {
      var word: UInt64 = generator.next()
      for _ in 0..<min(8, count - index) {
        result[index] = UInt8(truncatingIfNeeded: word)
        word >>= 8
        index += 1
      }
    }
    return result
  }
}
