import CofferAPI
import Testing

struct EventParserTests {
  func events(_ text: String, in size: Int = .max) throws -> [StreamEvent] {
    var parser = EventParser()
    let bytes = Array(text.utf8)
    return try stride(from: 0, to: bytes.count, by: min(size, bytes.count)).flatMap { start in
      try parser.take(bytes[start..<min(bytes.count, start + min(size, bytes.count))])
    }
  }

  @Test func `events are read as the standard says, whatever pieces they come in`() throws {
    let text =
      "\u{FEFF}: hello\n\nretry: 10\nid: 1\nevent: change\ndata: a\ndata:b\ndata:  c\n\nevent: lost\n\ndata\n\nid\ndata: e\r\r\n"
      + "unknown: x\ndata: f\r\n\r\ndata: unfinished"
    let expected = [
      StreamEvent(name: "change", data: "a\nb\n c", id: "1"), StreamEvent(name: "message", data: "", id: "1"),
      StreamEvent(name: "message", data: "e", id: ""), StreamEvent(name: "message", data: "f", id: ""),
    ]
    for size in [1, 2, 3, 7, .max] { #expect(try events(text, in: size) == expected, "\(size)") }
  }

  @Test func `what is beyond the bounds is an error, at once`() throws {
    let line = String(repeating: "x", count: EventParser.maximumLine)
    #expect(try events("\(line)\n").isEmpty)
    #expect(throws: EventParser.Malformed.self) { try events(line + "x") }
    let data = "data: " + String(repeating: "x", count: 4_000) + "\n"
    #expect(try events(String(repeating: data, count: 4) + "\n").count == 1)
    #expect(throws: EventParser.Malformed.self) { try events(String(repeating: data, count: 5)) }
    #expect(throws: EventParser.Malformed.self) { try events("id: a\u{7F}b\n") }
    #expect(throws: EventParser.Malformed.self) { try events("id: a\u{0}b\n") }
    #expect(throws: EventParser.Malformed.self) {
      try events("id: \(String(repeating: "a", count: EventParser.maximumID + 1))\n")
    }
  }

  @Test func `a time to wait is a number, or nothing`() throws {
    var parser = EventParser()
    for (text, retry) in [("2000", 2000), ("-1", 2000), ("1e3", 2000), ("99999999999999999999", 2000), ("0", 0)] {
      _ = try parser.take(Array("retry: \(text)\n".utf8))
      #expect(parser.retry == retry)
    }
  }

  @Test func `no bytes make it fail otherwise`() {
    var generator = SystemRandomNumberGenerator()
    for _ in 0..<2_000 {
      var parser = EventParser()
      let bytes = (0..<200).map { _ in
        Bool.random(using: &generator)
          ? UInt8.random(in: 0...255, using: &generator) : Array("\r\n:id data".utf8).randomElement()!
      }
      _ = try? parser.take(bytes)
    }
  }
}
