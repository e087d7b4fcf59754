/// SplitMix64: the same seed gives the same test.
struct SeededGenerator: RandomNumberGenerator {
  private var state: UInt64

  init(seed: UInt64) { state = seed }

  mutating func next() -> UInt64 {
    state &+= 0x9E37_79B9_7F4A_7C15
    var word = state
    word = (word ^ word >> 30) &* 0xBF58_476D_1CE4_E5B9
    word = (word ^ word >> 27) &* 0x94D0_49BB_1331_11EB
    return word ^ word >> 31
  }

  mutating func chance(_ percent: Int) -> Bool { Int.random(in: 0..<100, using: &self) < percent }
  mutating func pick<Value>(_ values: [Value]) -> Value { values.randomElement(using: &self)! }
  mutating func some<Value>(_ values: [Value], _ percent: Int = 40) -> [Value] {
    values.filter { _ in chance(percent) }
  }
  /// A scope of a rule: absent, or with something in it.
  mutating func scope<Value>(_ values: [Value]) -> [Value]? {
    let chosen = some(values)
    return chance(50) || chosen.isEmpty ? nil : chosen
  }
}
