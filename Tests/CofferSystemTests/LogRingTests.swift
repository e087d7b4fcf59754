import CofferSystem
import Logging
import Testing

struct LogRingTests {
  @Test func `the newest lines are kept, masked and cut`() {
    let ring = LogRing(lines: 3, bytes: 60)
    let log = ring.log(label: "test")
    for number in 1...5 { log.info("line \(public: number) of \("a secret")") }
    #expect(ring.lines.count == 3)
    #expect(ring.lines.map { $0.hasSuffix("of <masked>") } == [true, true, true])
    #expect(ring.lines.first?.contains("info line 3 ") == true)
    log.error("\(public: String(repeating: "ä", count: 100))")
    #expect(ring.lines.allSatisfy { $0.utf8.count <= 60 })
    #expect(ring.lines.last?.hasSuffix("ä") == true)
  }

  @Test func `what is below the level is not kept, also in logs that were made before`() {
    let ring = LogRing(lines: 9, bytes: 100)
    let log = ring.log(label: "test")
    log.debug("no")
    log.info("yes")
    ring.level = .warning
    log.info("no")
    log.warning("yes")
    ring.level = .debug
    log.debug("yes")
    #expect(ring.lines.count == 3 && ring.lines.allSatisfy { $0.hasSuffix(" yes") })
  }
}
