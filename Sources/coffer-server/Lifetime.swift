internal import ArgumentParser

/// A span of time on the command line: a number and `s`, `m`, `h`, `d` or `w`.
struct Lifetime: ExpressibleByArgument, CustomStringConvertible {
  let seconds: Int64

  init(seconds: Int64) { self.seconds = seconds }

  init?(argument: String) {
    let units: [Character: Int64] = ["s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800]
    let digits = argument.dropLast()
    guard let unit = argument.last.flatMap({ units[$0] }), (1...9).contains(digits.utf8.count),
      digits.utf8.allSatisfy({ (48...57).contains($0) }), let number = Int64(digits)
    else { return nil }
    seconds = number * unit
  }

  var description: String { seconds.isMultiple(of: 86_400) ? "\(seconds / 86_400)d" : "\(seconds)s" }
  var defaultValueDescription: String { description }
}
