import CofferTestSupport

extension SeededGenerator {
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
