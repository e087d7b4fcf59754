import CofferAPI
import CofferPolicy
import CofferServerSQLite
import Foundation
import HTTPTypes
import Testing

@testable import CofferServer

/// What devices uploaded and answered, in the console.
@Suite struct ConsoleDeviceTests {
  private static let page = ConsoleRuleTests.page

  private struct Fixture {
    let company: Company
    let person: Person
    let device: EnrolledDevice
    var path: String { "/console/devices/\(device.enrollment.deviceId)" }

    func upload(_ lines: [String]) async throws {
      let body = String(decoding: try JSONEncoder().encode(LogRequest(lines: lines)), as: UTF8.self)
      let reply = try await company.harness.send(
        .put, "/v1/device/log", token: try await device.token(), json: body)
      #expect(reply.status == 204)
    }

    func send(_ entries: [(number: Int64, text: String)]) async throws {
      let request = DecisionsRequest(entries: entries.map { .init(number: $0.number, entry: $0.text) })
      let body = String(decoding: try JSONEncoder().encode(request), as: UTF8.self)
      let reply = try await company.harness.send(
        .post, "/v1/device/decisions", token: try await device.token(), json: body)
      #expect(reply.status == 200, "\(String(decoding: reply.body, as: UTF8.self))")
    }
  }

  private static func fixture() async throws -> Fixture {
    let company = try await ConsoleRuleTests.company(Harness())
    return Fixture(company: company, person: try await Person(company), device: try await company.enroll())
  }

  /// A chain of decisions as a device writes it: every third one is refused.
  private static func chain(_ count: Int) -> [(number: Int64, text: String)] {
    var previous = DecisionRecord.beginning
    return (1...count).map { number in
      let isRefused = number % 3 == 0
      let (action, reason, rule) =
        isRefused ? ("print", "forbidden", "no-print") : ("import", "permitted", "settings:ownerActions")
      let text = """
        {"action":"\(action)","actor":"owner","number":\(number),"previous":"\(previous)","reason":"\(reason)",\
        "revision":4,"rules":["\(rule)"],"time":\(1_800_000_000 + number)}
        """
      #expect(DecisionRecord(text: text) != nil)
      previous = DecisionRecord.hash(of: text)
      return (Int64(number), text)
    }
  }

  private static func rows(_ page: String) -> [Int64] {
    page.components(separatedBy: "Number </span>").dropFirst().compactMap {
      Int64($0.prefix { $0.isNumber })
    }
  }

  @Test func `decisions are listed with pages and chosen by their outcome`() async throws {
    let fixture = try await Self.fixture()
    let path = "\(fixture.path)/decisions"
    #expect(try await Self.page(fixture.person, path).contains("The device has sent no decision."))
    #expect(try await Self.page(fixture.person, fixture.path).contains("None so far"))
    try await fixture.send(Self.chain(120))
    let first = try await Self.page(fixture.person, path)
    #expect(Self.rows(first) == Array((71...120).reversed()))
    #expect(first.contains("Every number from 1 to 120 is here.") && first.contains("Import"))
    #expect(first.contains("A rule forbids it.") && first.contains("rule no-print") && first.contains("the settings"))
    #expect(!first.contains("It does not follow"))
    #expect(first.contains("\(path)?before=71"))
    let last = try await Self.page(fixture.person, "\(path)?before=21")
    #expect(Self.rows(last) == Array((1...20).reversed()) && !last.contains("Show older ones"))
    let refused = try await Self.page(fixture.person, "\(path)?outcome=refused")
    #expect(Self.rows(refused) == stride(from: 120, through: 1, by: -3).map { Int64($0) })
    #expect(!refused.contains(">Permitted</span>"))
    let permitted = try await Self.page(fixture.person, "\(path)?outcome=permitted")
    #expect(Self.rows(permitted).count == 50 && !permitted.contains(">Refused</span>"))
    let next = try #require(Self.rows(permitted).last)
    #expect(permitted.contains("\(path)?outcome=permitted&amp;before=\(next)"))
    let rest = try await Self.page(fixture.person, "\(path)?outcome=permitted&before=\(next)")
    #expect(Self.rows(rest).count == 30 && !rest.contains("Show older ones"))
    #expect(try await Self.page(fixture.person, fixture.path).contains("up to number 120"))
  }

  @Test func `what is missing, altered or no decision shows`() async throws {
    let fixture = try await Self.fixture()
    let path = "\(fixture.path)/decisions"
    let chain = Self.chain(20)
    let altered = (number: Int64(12), text: chain[11].text.replacing("1800000012", with: "1800000013"))
    let hostile = (number: Int64(25), text: "<script>alert(1)</script>\u{202E}")
    let kept = chain.filter { ![1, 5, 6, 7, 12].contains($0.number) }
    try await fixture.send(kept + [altered, hostile])
    let page = try await Self.page(fixture.person, path)
    #expect(page.contains("8 decisions are missing: ") && page.contains("1, 5 to 7 and 21 to 24. "))
    for text in ["Number </span>1</th>", "Number </span>5 to 7</th>", "Number </span>21 to 24</th>"] {
      #expect(page.contains(text), "\(text)")
    }
    #expect(page.components(separatedBy: "It does not follow on the decision before it").count == 2)
    #expect(page.contains("Not readable") && page.contains("&lt;script&gt;alert(1)&lt;/script&gt;\\u{202E}"))
    #expect(!page.contains("<script>") && !page.contains("\u{202E}"))
    #expect(try await Self.page(fixture.person, fixture.path).contains("Some are missing"))
    // One that cannot be read may be either.
    #expect(try await Self.page(fixture.person, "\(path)?outcome=refused").contains("Not readable"))
  }

  @Test func `a log is listed line by line and downloaded, and what a device put into it stays text`() async throws {
    let fixture = try await Self.fixture()
    let path = "\(fixture.path)/log"
    let download = {
      try await fixture.company.harness.send(.get, "\(path)/download", headers: [.cookie: fixture.person.cookie])
    }
    #expect(try await Self.page(fixture.person, path).contains("The device has uploaded no log."))
    #expect(try await download().status == 404)
    let hostile = "</code><script>alert(1)</script>\n\u{1B}[2J\u{202E}\u{2028}<masked>"
    try await fixture.upload((1...300).map { "line \($0)" } + [hostile])
    let page = try await Self.page(fixture.person, path)
    #expect(page.contains("Lines 102 to 301") && page.contains("<ol class=\"log\" start=\"102\">"))
    #expect(!page.contains(">line 101<") && page.contains(">line 102<"))
    let safe = #"&lt;/code&gt;&lt;script&gt;alert(1)&lt;/script&gt;\u{A}\u{1B}[2J\u{202E}\u{2028}&lt;masked&gt;"#
    #expect(page.contains(safe) && !page.contains("<script>") && !page.contains("\u{1B}"))
    let earlier = try await Self.page(fixture.person, "\(path)?through=101")
    #expect(earlier.contains("Lines 1 to 101") && !earlier.contains("Show earlier lines"))
    for odd in ["-5", "99999999", "x", "%22%3E"] { _ = try await Self.page(fixture.person, "\(path)?through=\(odd)") }
    let file = try await download()
    #expect(file.status == 200 && file.headers[.contentType] == "text/plain; charset=utf-8")
    let name = "coffer-log-\(fixture.device.enrollment.deviceId.prefix(8)).txt"
    #expect(file.headers[.contentDisposition] == "attachment; filename=\"\(name)\"")
    #expect(file.headers[.xContentTypeOptions] == "nosniff" && file.headers[.cacheControl] == "no-store")
    let lines = String(decoding: file.body, as: UTF8.self).split(separator: "\n")
    #expect(lines.count == 301 && !file.body.contains(0x1B))
    #expect(try await Self.page(fixture.person, fixture.path).contains("See the log"))
  }

  @Test func `the log is ordered from its page, which says that the order waits`() async throws {
    let fixture = try await Self.fixture()
    let path = "\(fixture.path)/log"
    let form = try #require(
      ConsoleForm(try await Self.page(fixture.person, path), action: "\(fixture.path)/order"))
    #expect(try await ConsoleTests.post(fixture.person, form.action, form.sent).status == 303)
    #expect(try await Self.page(fixture.person, path).contains("An order to upload the log waits for the device."))
  }

  @Test func `an order is shown with the receipt, its time and the reason`() async throws {
    let fixture = try await Self.fixture()
    let (harness, id) = (fixture.company.harness, fixture.device.enrollment.deviceId)
    let order = try await fixture.company.make("/v1/devices/\(id)/commands", #"{"kind":"lock"}"#)
    let path = "\(fixture.path)/orders/\(order)"
    #expect(try await Self.page(fixture.person, path).contains("It waits for the device"))
    let command = try #require(try await CommandRecordTests.orders(fixture.device).first).command
    harness.time.advance(120)
    let receipt = CommandReceipt(
      tenant: command.tenant, device: command.audience, command: command.id, kind: command.kind, outcome: .refused,
      time: harness.time.seconds, reason: "Not <b>here</b>.")
    let document = try receipt.signed(with: fixture.device.key)
    let taken = try await harness.send(.post, "/v1/device/receipts", json: #"{"receipt":"\#(document)"}"#)
    #expect(taken.status == 204 || taken.status == 200)
    let page = try await Self.page(fixture.person, path)
    for text in [">Refused</span>", "“Not &lt;b&gt;here&lt;/b&gt;.”", document, "2027-01-15 08:02 UTC", "Answered"] {
      #expect(page.contains(text), "\(text)")
    }
    #expect(!page.contains("<b>"))
    for place in [fixture.path, "\(fixture.path)/orders"] {
      let list = try await Self.page(fixture.person, place)
      #expect(list.contains("Not &lt;b&gt;here&lt;/b&gt;.") && list.contains(path) && list.contains("08:02 UTC"))
    }
    #expect(try await Self.page(fixture.person, "/console/audit").contains(path))
    // The other device's page does not have it, and the orders of a device that is gone are there.
    let other = try await fixture.company.enroll().enrollment.deviceId
    let foreign = try await harness.send(
      .get, "/console/devices/\(other)/orders/\(order)", headers: [.cookie: fixture.person.cookie])
    #expect(foreign.status == 404)
    let removed = try await ConsoleTests.post(fixture.person, "\(fixture.path)/remove", [])
    #expect(removed.status == 303)
    #expect(try await Self.page(fixture.person, "\(fixture.path)/orders").contains("removed device \(id.prefix(8))"))
    #expect(try await Self.page(fixture.person, path).contains(document))
    for gone in ["", "/log", "/decisions"] {
      let reply = try await harness.send(.get, fixture.path + gone, headers: [.cookie: fixture.person.cookie])
      #expect(reply.status == 404, "\(gone)")
    }
  }

  @Test func `the newest orders are on the device's page, and all on their own`() async throws {
    let fixture = try await Self.fixture()
    let id = fixture.device.enrollment.deviceId
    var orders: [String] = []
    for number in 0..<60 {
      let kind = number < 40 ? "lock" : "refresh"
      orders.append(try await fixture.company.make("/v1/devices/\(id)/commands", #"{"kind":"\#(kind)"}"#))
    }
    let device = try await Self.page(fixture.person, fixture.path)
    #expect(device.contains(orders[59]) && device.contains(orders[50]) && !device.contains(orders[49]))
    let first = try await Self.page(fixture.person, "\(fixture.path)/orders")
    #expect(first.contains(orders[59]) && first.contains(orders[10]) && !first.contains(orders[9]))
    #expect(first.contains("\(fixture.path)/orders?before=11"))
    let last = try await Self.page(fixture.person, "\(fixture.path)/orders?before=11")
    #expect(last.contains(orders[9]) && last.contains(orders[0]) && !last.contains(orders[10]))
  }

  @Test func `a device that was wiped says so, and asks for nothing any more`() async throws {
    let fixture = try await Self.fixture()
    let (harness, id) = (fixture.company.harness, fixture.device.enrollment.deviceId)
    _ = try await fixture.company.make("/v1/devices/\(id)/commands", #"{"kind":"wipe"}"#)
    let before = try await Self.page(fixture.person, fixture.path)
    #expect(!before.contains(">Wiped</span>") && before.contains("\(fixture.path)/order\""))
    #expect(try await Self.page(fixture.person, "/console").contains("A wipe waits for"))
    let command = try #require(try await CommandRecordTests.orders(fixture.device).first).command
    let receipt = try CommandRecordTests.receipt(fixture.device, command)
    let taken = try await harness.send(.post, "/v1/device/receipts", json: receipt)
    #expect((200...204).contains(taken.status))
    let after = try await Self.page(fixture.person, fixture.path)
    #expect(after.contains(">Wiped</span>") && after.contains("It was wiped: nothing of it is left to protect."))
    for gone in ["order", "wipe", "groups"] { #expect(!after.contains("\"\(fixture.path)/\(gone)\""), "\(gone)") }
    #expect(try await Self.page(fixture.person, "/console/devices").contains(">Wiped</span>"))
    let overview = try await Self.page(fixture.person, "/console")
    #expect(!overview.contains("A wipe waits for") && !overview.contains("is the newest"))
    #expect(overview.contains("<dt>Wiped</dt>"))
    #expect(
      try await Self.page(fixture.person, "/console/settings/devices").contains("There is no device to follow them."))
  }

  @Test func `the audit names what each entry is about, and leads there`() async throws {
    let fixture = try await Self.fixture()
    let (company, id) = (fixture.company, fixture.device.enrollment.deviceId)
    let app = try await company.make("/v1/apps", Company.app("com.acme.writer"))
    _ = try await company.make("/v1/rules", #"{"id":"r","effect":"forbid","conditions":[]}"#)
    let draft = try await company.make("/v1/drafts", #"{"note":"For March"}"#)
    let order = try await company.make("/v1/devices/\(id)/commands", #"{"kind":"lock"}"#)
    let managed = try await company.harness.send(
      .put, "/v1/managed-settings", token: company.owner,
      headers: [.ifMatch: try await company.tag("/v1/managed-settings")], json: #"{"lockAfterMinutes":5}"#)
    #expect(managed.status == 200)
    let page = try await Self.page(fixture.person, "/console/audit")
    for text in [
      "<a href=\"/console/apps/\(app)\">", "<a href=\"/console/rules/r\">r</a>", "“For March”</a>",
      "<a href=\"\(fixture.path)/orders/\(order)\">Lock, linux \(id.prefix(8))</a>", ">Revision 2</a>",
      "set now: lock without use", "<a href=\"/console/drafts/\(draft)\">",
    ] { #expect(page.contains(text), "\(text)") }
    // What is gone is named and leads nowhere.
    let tag = try await company.tag("/v1/rules/r")
    _ = try await company.harness.send(.delete, "/v1/rules/r", token: company.owner, headers: [.ifMatch: tag])
    let after = try await Self.page(fixture.person, "/console/audit")
    #expect(!after.contains("href=\"/console/rules/r\"") && after.contains("Removed a rule"))
  }

  @Test func `the rest of a list is behind an address that tells nothing`() async throws {
    let fixture = try await Self.fixture()
    for number in 0..<101 { _ = try await fixture.company.make("/v1/groups", #"{"id":"g-\#(number)","name":"G"}"#) }
    let first = try await Self.page(fixture.person, "/console/groups")
    let start = try #require(first.range(of: "href=\"/console/groups?after=")).upperBound
    let cursor = String(first[start...].prefix { $0 != "\"" })
    #expect(cursor.count > 30)
    // The company has two groups of its own before these.
    #expect(!first.contains(">g-98<") && first.contains(">g-97<"))
    let rest = try await Self.page(fixture.person, "/console/groups?after=\(cursor)")
    #expect(rest.contains(">g-98<") && rest.contains(">g-100<") && !rest.contains(">g-97<"))
    // It is of this list and of this company.
    let other = try await Person(try await fixture.company.harness.company("Other"))
    _ = try await other.company.make("/v1/groups", #"{"id":"own","name":"Own"}"#)
    #expect(try await Self.page(other, "/console/groups?after=\(cursor)").contains(">own<"))
    #expect(try await Self.page(fixture.person, "/console/devices?after=\(cursor)").contains(fixture.path))
  }
}
