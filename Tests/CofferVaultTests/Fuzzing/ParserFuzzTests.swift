import CofferFiles
import CofferSystem
import CofferTestSupport
import Testing

@testable import CofferVault

/// Bytes that nobody wrote are refused or understood, and nothing else.
@Suite struct ParserFuzzTests {
  @Test func `what was stored is written again as it was`() throws {
    for parser in try StoredParser.all() {
      #expect(!parser.seeds.isEmpty, "\(parser.name)")
      if let seed = parser.seeds.first { #expect(try parser.rewrite(seed) == seed, "\(parser.name)") }
    }
  }

  @Test func `changed bytes are refused, or understood in one way`() throws {
    let parsers = try StoredParser.all()
    var refused = 0
    var understood = 0
    try Effort.rounds(3000) { seed in
      var generator = SeededGenerator(seed: seed)
      for parser in parsers {
        let start = parser.seeds.randomElement(using: &generator) ?? []
        let other = parser.seeds.randomElement(using: &generator) ?? []
        let bytes = ByteMutation.apply(to: start, other: other, generator: &generator)
        let rewritten: [UInt8]
        do {
          rewritten = try parser.rewrite(bytes)
        } catch {
          #expect(Self.isRefusal(error), "\(parser.name), seed \(seed): \(error)")
          refused += 1
          continue
        }
        understood += 1
        // What was understood is written in one form, and read from it as the same.
        let again = try parser.rewrite(rewritten)
        #expect(again == rewritten, "\(parser.name), seed \(seed)")
      }
    }
    #expect(refused > 0 && understood > 0)
  }

  private static func isRefusal(_ error: any Error) -> Bool {
    switch error {
    case is MalformedBytes, is InvalidName: true
    case let error as VaultError:
      switch error {
      case .damaged, .notAVault, .newerFormat: true
      default: false
      }
    default: false
    }
  }
}
