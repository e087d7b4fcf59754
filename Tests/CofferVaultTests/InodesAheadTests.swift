import Testing

@testable import CofferVault

@Suite struct InodesAheadTests {
  @Test func `who goes on is given what comes next, and who begins is not`() {
    var ahead = InodesAhead()
    #expect(ahead.next(missing: 10) == nil)
    #expect(ahead.next(missing: 11) == 12...27)
    // An operation that begins anew asks again.
    #expect(ahead.next(missing: 11) == 12...27)
    // What was read ahead is not missing.
    #expect(ahead.next(missing: 28) == 29...44)
    #expect(ahead.next(missing: 45) == 46...61)
    // Too far, and back.
    #expect(ahead.next(missing: 63) == nil)
    #expect(ahead.next(missing: 5) == nil)
  }

  @Test func `several go through trees at the same time, each at its place`() {
    var ahead = InodesAhead()
    let starts: [UInt64] = [1000, 10, 500, 2000]
    for start in starts { #expect(ahead.next(missing: start) == nil) }
    for step in 1...20 as ClosedRange<UInt64> {
      // They begin anew, each between others.
      for start in starts + starts.reversed() {
        let number = start + 17 * step
        #expect(ahead.next(missing: number) == number + 1...number + 16)
      }
    }
  }

  @Test func `whoever asks here and there is given nothing`() {
    var ahead = InodesAhead()
    for number in 1...1000 as ClosedRange<UInt64> { #expect(ahead.next(missing: number.byteSwapped) == nil) }
  }

  /// The kernel may be asked for any number.
  @Test func `numbers that nobody gave are no end of the program`() {
    var ahead = InodesAhead()
    for number in (UInt64.max - 40)...(.max) { _ = ahead.next(missing: number) }
    #expect(ahead.next(missing: .max) == nil)
    #expect(ahead.next(missing: 0) == nil)
    #expect(ahead.next(missing: 1) == 2...17)
  }
}
