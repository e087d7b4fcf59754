import CofferAPI
import CofferCrypto
import CofferPolicy
import Foundation
import Testing

struct ItemTests {
  let key = SigningKey().verifyingKey

  func draft(_ change: (inout ItemDraft) -> Void = { _ in }) -> ItemDraft {
    var draft = ItemDraft(
      name: "Acme Editor", bundleId: "com.acme.editor", teamId: "ACME", teamKey: key.text,
      extensions: [".DOCX", "pdf", ".pdf"], actions: ["openIn", "edit", "openIn"])
    change(&draft)
    return draft
  }

  @Test func `a draft becomes an approval that a policy may hold`() throws {
    let approval = try draft().approval(id: "i-1")
    #expect(approval.extensions == ["docx", "pdf"])
    #expect(approval.actions == [.edit, .openIn])
    #expect(approval.teamKey == key)
    #expect(approval.tier == .mediated)
    let filtered = try draft { $0.teamKey = nil }.approval(id: "i-2")
    #expect(filtered.tier == .filtered)
    try Company().policy(1) { $0.apps = [approval, filtered] }.validate()
    let item = Item(approval)
    #expect(item.teamKey == key.text)
    #expect(try JSONDecoder().decode(Item.self, from: JSONEncoder().encode(item)) == item)
  }

  @Test func `each wrong member is named`() {
    let wrong: [(String, (inout ItemDraft) -> Void)] = [
      ("name", { $0.name = "" }), ("name", { $0.name = "a\nb" }),
      ("name", { $0.name = String(repeating: "x", count: 201) }), ("bundleId", { $0.bundleId = "com/acme" }),
      ("teamId", { $0.teamId = "" }), ("teamKey", { $0.teamKey = "" }), ("teamKey", { $0.teamKey = "AAAA" }),
      ("teamKey", { $0.teamKey = key.text + "=" }), ("extensions", { $0.extensions = [""] }),
      ("extensions", { $0.extensions = ["..pdf"] }), ("extensions", { $0.extensions = ["p df"] }),
      ("extensions", { $0.extensions = Array(repeating: "pdf", count: 1_001) }),
      ("actions", { $0.actions = ["fly"] }), ("actions", { $0.actions = Array(repeating: "view", count: 101) }),
    ]
    for (member, change) in wrong {
      #expect { try draft(change).approval(id: "i") } throws: { ($0 as? ItemDraft.Fault)?.member == member }
    }
  }
}
