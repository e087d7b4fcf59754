import Foundation
import Testing

/// A call that must fail, and change nothing.
struct Refused {
  let what: String
  let error: CInt
  let person: Person?
  let given: (Plot) throws -> Void
  let call: (Plot) throws -> Void

  /// - Parameters:
  ///   - person: who makes the call.
  ///   - given: what is laid out before it, beside the furniture.
  init(
    _ what: String, _ error: CInt, as person: Person? = nil, given: @escaping (Plot) throws -> Void = { _ in },
    _ call: @escaping (Plot) throws -> Void
  ) {
    self.what = what
    self.error = error
    self.person = person
    self.given = given
    self.call = call
  }

  /// Tries every call on a furnished plot of its own.
  static func all(on kind: Ground.Kind, _ rows: [Refused], sourceLocation: SourceLocation = #_sourceLocation) throws {
    let ground = try Ground.shared(kind)
    for row in rows where row.person == nil || Person.canBeAnother {
      let plot = try ground.plot()
      try plot.furnish()
      try row.given(plot)
      let before = try Tree(plot.path)
      let error = outcome { try onOwnThread(as: row.person) { try row.call(plot) } }
      #expect(error == CallError(row.error), "\(row.what)", sourceLocation: sourceLocation)
      let changes = try Tree(plot.path).differences(from: before)
      #expect(changes == [], "\(row.what) left something behind", sourceLocation: sourceLocation)
    }
  }
}

/// What a call was refused with; nil where it was not.
func outcome(_ call: () throws -> Void) -> CallError? {
  do {
    try call()
    return nil
  } catch let error as CallError {
    return error
  } catch {
    return CallError(0)
  }
}
