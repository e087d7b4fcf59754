/// Keeps what was used lately, within a bound, without a list of uses.
///
/// Two generations: when the young one is full it becomes the old one, and what was not used since is dropped.
struct GenerationCache<Key: Hashable & Sendable, Value: Sendable>: Sendable {
  /// Cost of a generation.
  var limit: Int
  private var young: [Key: (value: Value, cost: Int)] = [:]
  private var old: [Key: (value: Value, cost: Int)] = [:]
  private var cost = 0

  init(limit: Int) { self.limit = limit }

  mutating func find(_ key: Key) -> Value? {
    if let found = young[key] { return found.value }
    guard let found = old.removeValue(forKey: key) else { return nil }
    insert(found.value, key, cost: found.cost)
    return found.value
  }

  mutating func insert(_ value: Value, _ key: Key, cost: Int = 1) {
    if self.cost >= limit {
      old = young
      young = [:]
      self.cost = 0
    }
    old[key] = nil
    if let before = young.updateValue((value, cost), forKey: key) { self.cost -= before.cost }
    self.cost += cost
  }

  mutating func remove(_ key: Key) {
    if let before = young.removeValue(forKey: key) { cost -= before.cost }
    old[key] = nil
  }
}
