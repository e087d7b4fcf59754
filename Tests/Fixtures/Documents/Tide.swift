import Foundation

/// The height of the water above chart datum.
struct Tide: Codable, Comparable {
  let time: Date
  let metres: Double

  static func < (left: Tide, right: Tide) -> Bool { left.time < right.time }
}

func highest(of tides: [Tide]) -> Tide? {
  tides.max { $0.metres < $1.metres }
}
