internal import CofferFiles

/// Tells which pages of a file's map are read together with one that is missing.
///
/// Neighbouring pages lie side by side in the index, so that sixteen are read in a fraction of the time that sixteen reads take.
/// That pays where the others will be needed: for who reads on from where they were, and for who comes back to a file whose whole
/// map finds room in memory. A single look into a file, or anywhere in a very large one, reads one page.
struct PagesAhead {
  /// Pages that are read together at most.
  static let count: UInt64 = 16

  /// Behind what was read last; nil before the first.
  private var next: UInt64?

  /// The pages to read for `index`, which is among them.
  ///
  /// - Parameters:
  ///   - pageCount: of the file's map.
  ///   - limit: how many pages of one file find room in memory; none where there is no room at this moment.
  mutating func range(for index: UInt64, pageCount: UInt64, limit: UInt64) -> Range<UInt64> {
    var range = index..<(index + 1)
    if let next {
      if index == next {
        range = index..<(index + Self.count)
      } else if pageCount <= limit {
        // Aligned, so that whoever goes through the file in another order reads none twice.
        let first = index / Self.count * Self.count
        range = first..<(first + Self.count)
      }
    }
    range = range.lowerBound..<max(index + 1, min(range.upperBound, pageCount))
    next = range.upperBound
    return range
  }
}
