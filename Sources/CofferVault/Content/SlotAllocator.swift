/// Which slots of an object can be written.
///
/// A slot that the index refers to, or referred to in the last commit that is durable, is never written: what a change
/// frees waits for the join that stores the change, and then for the commit that makes the join durable.
struct SlotAllocator {
  /// Every slot in use is below this one.
  private(set) var reach: UInt64
  /// Slots that a block of the present content lies in.
  private(set) var used: UInt64
  private var free = SlotRanges()
  /// Some of `free` may have no room on the disk, nobody knows which.
  private var mayHaveHoles = false
  /// Freed by what has not joined yet.
  private var unjoined = SlotRanges()
  /// Freed by joins that no durable commit holds yet, by the generation that will.
  private var waiting: [(generation: UInt64, slots: SlotRanges)] = []

  /// Ranges that are kept at most; what does not fit goes back to the disk.
  private static let freeLimit = 32_768
  /// Ranges that wait at most before a commit is asked for.
  private static let waitingLimit = 65_536

  init(_ use: SlotUse) {
    reach = use.reach
    used = use.used
  }

  var use: SlotUse { SlotUse(reach: reach, used: used) }
  /// Slots below the reach that are neither used nor known here.
  var hasUnknown: Bool { used < reach }
  /// Slots below the reach that can be written, and have room on the disk for sure.
  var freeCount: UInt64 { mayHaveHoles ? 0 : free.slotCount }
  /// Slots that the present content has let go, and that the commit of `generation` frees.
  func waitingCount(until generation: UInt64) -> UInt64 {
    waiting.reduce(0) { $0 + ($1.generation <= generation ? $1.slots.slotCount : 0) }
  }
  var isWaiting: Bool { !waiting.isEmpty || !unjoined.isEmpty }
  var hasFree: Bool { !free.isEmpty }
  var needsCommit: Bool { waiting.reduce(0) { $0 + $1.slots.ranges.count } > Self.waitingLimit }

  /// Takes up to `count` neighbouring slots.
  mutating func take(upTo count: UInt64) -> Range<UInt64> {
    if let found = free.takeLast(upTo: count) {
      if free.isEmpty { mayHaveHoles = false }
      return found
    }
    defer { reach += count }
    return reach..<(reach + count)
  }

  /// Gives back slots that no map entry ever named in the index. There may have been no room to write them.
  mutating func giveBack(_ slots: Range<UInt64>) {
    free.insert(slots)
    mayHaveHoles = true
  }

  mutating func didUse(_ count: UInt64) { used += count }

  /// The present content no longer uses a slot.
  mutating func didUnuse() { used -= 1 }

  /// Frees a slot that the index may refer to until the next join.
  mutating func releaseAfterJoin(_ slot: UInt64) { unjoined.insert(slot..<(slot + 1)) }

  /// Frees a slot that joins up to the one of `generation` may refer to.
  mutating func release(_ slot: UInt64, after generation: UInt64) {
    if waiting.last?.generation == generation {
      waiting[waiting.count - 1].slots.insert(slot..<(slot + 1))
    } else {
      var slots = SlotRanges()
      slots.insert(slot..<(slot + 1))
      waiting.append((generation, slots))
    }
  }

  /// Everything so far has joined, in the commit that will be `generation`.
  mutating func didJoin(generation: UInt64) {
    guard !unjoined.isEmpty else { return }
    if waiting.last?.generation == generation {
      for range in unjoined.ranges { waiting[waiting.count - 1].slots.insert(range) }
    } else {
      waiting.append((generation, unjoined))
    }
    unjoined = SlotRanges()
  }

  /// Slots that waited for a commit up to `generation` are free; returns what goes back to the disk because it does not
  /// fit.
  mutating func didCommit(generation: UInt64) -> [Range<UInt64>] {
    guard waiting.contains(where: { $0.generation <= generation }) else { return [] }
    for entry in waiting where entry.generation <= generation {
      for range in entry.slots.ranges { free.insert(range) }
    }
    waiting.removeAll { $0.generation <= generation }
    free.coalesce()
    guard free.ranges.count > Self.freeLimit else { return [] }
    return free.removeFirst(free.ranges.count - Self.freeLimit)
  }

  /// Slots that a look through the map found unused. They may have been given back to the disk.
  mutating func didFind(_ ranges: [Range<UInt64>]) {
    for range in ranges.prefix(Self.freeLimit) { free.insert(range) }
    mayHaveHoles = !free.isEmpty
  }

  /// All free slots, which are then no longer known here.
  mutating func takeAllFree() -> [Range<UInt64>] {
    free.coalesce()
    defer { (free, mayHaveHoles) = (SlotRanges(), false) }
    return free.ranges
  }

  /// Lowers the reach to the start of `last`, free slots that end there; `false` where they do not.
  mutating func lowerReach(by last: Range<UInt64>) -> Bool {
    guard last.upperBound == reach else { return false }
    reach = last.lowerBound
    return true
  }
}

/// Slots in ranges; neighbours that come one after the other share one.
struct SlotRanges {
  private(set) var ranges: [Range<UInt64>] = []
  /// In all of them.
  private(set) var slotCount: UInt64 = 0

  var isEmpty: Bool { ranges.isEmpty }

  mutating func insert(_ range: Range<UInt64>) {
    slotCount += UInt64(range.count)
    guard let last = ranges.last else { return ranges.append(range) }
    if last.upperBound == range.lowerBound {
      ranges[ranges.count - 1] = last.lowerBound..<range.upperBound
    } else if range.upperBound == last.lowerBound {
      ranges[ranges.count - 1] = range.lowerBound..<last.upperBound
    } else {
      ranges.append(range)
    }
  }

  mutating func takeLast(upTo count: UInt64) -> Range<UInt64>? {
    guard let last = ranges.last else { return nil }
    slotCount -= min(count, UInt64(last.count))
    if UInt64(last.count) <= count { return ranges.removeLast() }
    ranges[ranges.count - 1] = (last.lowerBound + count)..<last.upperBound
    return last.lowerBound..<(last.lowerBound + count)
  }

  mutating func removeFirst(_ count: Int) -> [Range<UInt64>] {
    let first = Array(ranges[..<count])
    ranges.removeFirst(count)
    slotCount -= first.reduce(0) { $0 + UInt64($1.count) }
    return first
  }

  /// Sorts, and joins neighbours. Later ranges are lower: what is taken first lies at the start of the object.
  mutating func coalesce() {
    guard ranges.count > 1 else { return }
    ranges.sort { $0.lowerBound > $1.lowerBound }
    var joined: [Range<UInt64>] = []
    joined.reserveCapacity(ranges.count)
    for range in ranges {
      if let last = joined.last, last.lowerBound == range.upperBound {
        joined[joined.count - 1] = range.lowerBound..<last.upperBound
      } else {
        joined.append(range)
      }
    }
    ranges = joined
  }
}
