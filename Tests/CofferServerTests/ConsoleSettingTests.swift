import CofferAPI
import CofferCrypto
import CofferPolicy
import CofferServerSQLite
import CofferTestSupport
import Foundation
import HTTPTypes
import Testing

@testable import CofferServer

/// The settings of devices in the console: typed, whole, at once or in a draft, and what devices made of them.
@Suite struct ConsoleSettingTests {
  private static let page = ConsoleRuleTests.page
  private static let path = "/console/settings"

  private static func company() async throws -> (Company, Person) {
    let company = try await ConsoleRuleTests.company(Harness())
    return (company, try await Person(company))
  }

  private static func form(_ person: Person, _ path: String, _ action: String) async throws -> ConsoleForm {
    try #require(ConsoleForm(try await page(person, path), action: action), "\(path) has no \(action)")
  }

  private static func send(_ person: Person, _ form: ConsoleForm) async throws -> Reply {
    try await ConsoleTests.post(person, form.action, form.sent)
  }

  private static func put(_ values: String, _ company: Company) async throws {
    let reply = try await company.harness.send(
      .put, "/v1/managed-settings", token: company.owner,
      headers: [.ifMatch: try await company.tag("/v1/managed-settings")], json: values)
    #expect(reply.status == 200, "\(String(decoding: reply.body, as: UTF8.self))")
  }

  private static func managed(_ company: Company) async throws -> [String: JSONValue] {
    try await company.policy().settings.managed ?? [:]
  }

  @Test func `each setting has a field of its own kind, and nothing that was not touched changes`() async throws {
    let (company, person) = try await Self.company()
    let seed = UInt64.random(in: .min ... .max)
    print("seed \(seed)")
    var random = SeededGenerator(seed: seed)
    for _ in 0..<40 {
      var values: [String: JSONValue] = [:]
      for key in ManagedSettings.Key.allCases where Bool.random(using: &random) {
        values[key.rawValue] =
          switch key {
          case .passcodeRequired: .boolean(.random(using: &random))
          case .passcodeMinimumLength: .integer(.random(in: 1...128, using: &random))
          case .protectionAtLeast: .string(ProtectionLevel.allCases.randomElement(using: &random)?.rawValue ?? "")
          case .lockAfterMinutes: .integer(.random(in: 1...525_600, using: &random))
          case .logLevel:
            .string(ManagedSettings.LogLevel.allCases.randomElement(using: &random)?.rawValue ?? "")
          case .allowedServers:
            .array(
              ["a.example", "b.example:8443", "[::1]:9"].filter { _ in .random(using: &random) }.map { .string($0) })
          // What `true` becomes is signed by the root: in a test of its own.
          case .escrow: .boolean(false)
          }
      }
      try await Self.put(String(decoding: try JSONEncoder().encode(values), as: UTF8.self), company)
      let before = try await company.policy()
      let form = try await Self.form(person, Self.path, "\(Self.path)/managed")
      #expect(try await Self.send(person, form).status == 303)
      let after = try await company.policy()
      #expect(after.settings == before.settings && after.revision == before.revision, "\(values)")
      #expect((after.settings.managed ?? [:]) == values)
    }
  }

  @Test func `a value that a setting cannot have is refused at its field, and nothing changes`() async throws {
    let (company, person) = try await Self.company()
    try await Self.put(#"{"lockAfterMinutes":5}"#, company)
    let many = (1...51).map { "h\($0).example" }.joined(separator: " ")
    for (field, value, says) in [
      ("passcodeMinimumLength", "0", "is a whole number from 1 to 128"),
      ("passcodeMinimumLength", "129", "is a whole number from 1 to 128"),
      ("passcodeMinimumLength", "eight", "is a whole number from 1 to 128"),
      ("lockAfterMinutes", "5.5", "from 1 to 525600"), ("lockAfterMinutes", "99999999999999999999", "from 1 to 525600"),
      ("protectionAtLeast", "best", "is none of the choices"), ("logLevel", "INFO", "is none of the choices"),
      ("passcodeRequired", "perhaps", "is none of the choices"), ("escrow", "perhaps", "is none of the choices"),
      ("servers", many, "are at most 50 different ones"),
      ("servers", "https://files.example.com/", "such as files.example.com"),
      ("servers", "a.example a.example", "different ones"),
    ] {
      var form = try await Self.form(person, Self.path, "\(Self.path)/managed")
      if field == "servers" { form.set("allowedServers", "only") }
      form.set(field, value)
      let reply = try await Self.send(person, form)
      let page = String(decoding: reply.body, as: UTF8.self)
      #expect(reply.status == 422 && page.contains(says), "\(field) \(value.prefix(30))")
      let id = "console-settings-managed-\(field)"
      #expect(page.contains("href=\"#\(id)\"") && page.contains("id=\"\(id)\""), "\(field)")
    }
    var half = try await Self.form(person, Self.path, "\(Self.path)/managed")
    half.set("servers", "files.example.com")
    #expect(try await Self.send(person, half).status == 422)
    #expect(try await Self.managed(company) == ["lockAfterMinutes": .integer(5)])
  }

  @Test func `escrow is asked for once there is a key for it, and stays asked for when the form is saved again`()
    async throws
  {
    let (company, person) = try await Self.company()
    func ask() async throws -> Reply {
      var form = try await Self.form(person, Self.path, "\(Self.path)/managed")
      form.set("escrow", "true")
      return try await Self.send(person, form)
    }
    #expect(try await ask().status == 409)
    #expect(try await Self.managed(company)["escrow"] == nil)
    let key = Base64URL.encode(HybridKey().publicKey.bytes)
    let reply = try await company.harness.send(
      .post, "/v1/keys/delegations", token: company.owner,
      headers: [.ifMatch: try await company.tag("/v1/keys")], json: #"{"use":"escrow","key":"\#(key)"}"#)
    #expect(reply.status == 200, "\(String(decoding: reply.body, as: UTF8.self))")
    #expect(try await ask().status == 303)
    // Devices get what the root signed, in place of the word.
    guard case .string? = try await Self.managed(company)["escrow"] else {
      Issue.record("the policy carries no delegation")
      return
    }
    let before = try await company.policy()
    let form = try await Self.form(person, Self.path, "\(Self.path)/managed")
    #expect(try await Self.send(person, form).status == 303)
    #expect(try await company.policy().revision == before.revision)
  }

  @Test func `a form of the settings as they were is refused`() async throws {
    let (company, person) = try await Self.company()
    for (action, api, body) in [
      ("managed", "/v1/managed-settings", #"{"lockAfterMinutes":9}"#),
      ("grace", "/v1/grace", #"{"warnAfter":60,"blockAfter":90}"#),
      ("owner", "/v1/settings", #"{"ownerActions":["view"],"allowFilteredTier":true}"#),
    ] {
      var form = try await Self.form(person, Self.path, "\(Self.path)/\(action)")
      form.set("passcodeMinimumLength", "12")
      let reply = try await company.harness.send(
        .put, api, token: company.owner, headers: [.ifMatch: try await company.tag(api)], json: body)
      #expect(reply.status == 200)
      let before = try await company.policy()
      #expect(try await Self.send(person, form).status == 412, "\(action)")
      form.set("then", "draft")
      #expect(try await Self.send(person, form).status == 412, "\(action)")
      #expect(try await company.policy() == before, "\(action)")
      #expect(try await company.harness.store.read { try $0.countResources(.draft, tenant: company.tenant.id) } == 0)
    }
  }

  @Test func `times keep the unit that they are a whole number of`() async throws {
    let (company, person) = try await Self.company()
    for (warn, block) in [(1, 90), (60, 3600), (5400, 172_800), (86_400, 86_401)] {
      let reply = try await company.harness.send(
        .put, "/v1/grace", token: company.owner, headers: [.ifMatch: try await company.tag("/v1/grace")],
        json: #"{"warnAfter":\#(warn),"blockAfter":\#(block)}"#)
      #expect(reply.status == 200)
      let before = try await company.policy()
      let form = try await Self.form(person, Self.path, "\(Self.path)/grace")
      #expect(try await Self.send(person, form).status == 303)
      #expect(try await company.policy() == before, "\(warn) \(block)")
    }
    for (warn, block) in [("2", "1"), ("0", "1"), ("x", "1"), ("1", "999999")] {
      var form = try await Self.form(person, Self.path, "\(Self.path)/grace")
      for (name, value) in [("warnAfter", warn), ("blockAfter", block)] {
        form.set(name, value)
        form.set("\(name)Unit", "days")
      }
      #expect(try await Self.send(person, form).status == 422, "\(warn) \(block)")
    }
  }

  @Test func `a draft holds every setting, and none of it counts before it is published`() async throws {
    let (company, person) = try await Self.company()
    let before = try await company.policy()
    var form = try await Self.form(person, Self.path, "\(Self.path)/managed")
    form.set("lockAfterMinutes", "7")
    form.set("then", "draft")
    let made = try await Self.send(person, form)
    #expect(made.status == 303)
    let draft = String(try #require(made.headers[.location]).prefix { $0 != "?" })
    #expect(draft.hasPrefix("/console/drafts/"))
    for (action, name, value) in [("owner", "ownerActions", "print"), ("grace", "warnAfter", "1")] {
      var form = try await Self.form(person, "\(draft)/settings", "\(draft)/settings/\(action)")
      form.set(name, value)
      #expect(try await Self.send(person, form).status == 303, "\(action)")
    }
    let stale = try await Self.form(person, "\(draft)/settings", "\(draft)/settings/managed")
    var length = stale
    length.set("passcodeMinimumLength", "10")
    #expect(try await Self.send(person, length).status == 303)
    #expect(try await Self.send(person, stale).status == 412)
    #expect(try await company.policy() == before)
    let shown = try await Self.page(person, draft)
    for text in [
      "Setting of devices, lock without use: after 7 minutes.",
      "Setting of devices, length of a passcode: at least 10 characters.",
      "The person with the device may print.", "A device without news warns after 1 day",
    ] { #expect(shown.contains(text), "\(text)") }
    let publish = try await Self.form(person, draft, "\(draft)/publish")
    #expect(try await Self.send(person, publish).status == 303)
    let now = try await company.policy()
    #expect(now.settings.managed == ["lockAfterMinutes": .integer(7), "passcodeMinimumLength": .integer(10)])
    #expect(now.settings.ownerActions == [.print] && now.grace.warnAfter == 86_400)
  }

  @Test func `a draft holds file types and classifications, from either side`() async throws {
    let (company, person) = try await Self.company()
    var form = try await Self.form(person, "/console/file-types", "/console/file-types")
    form.set("extension", "dwg")
    form.set("mediaTypes", "image/vnd.dwg")
    form.set("then", "draft")
    let draft = String(try #require(try await Self.send(person, form).headers[.location]).prefix { $0 != "?" })
    var label = try await Self.form(person, "\(draft)/classification", "\(draft)/classification")
    label.set("id", "secret")
    label.set("name", "Again")
    let taken = try await Self.send(person, label)
    #expect(taken.status == 422)
    #expect(String(decoding: taken.body, as: UTF8.self).contains("is the name of another classification"))
    label.set("id", "board-only")
    #expect(try await Self.send(person, label).status == 303)
    var type = try await Self.form(person, "\(draft)/file-type?type=dwg", "\(draft)/file-type")
    type.set("mediaTypes", "image/x-dwg")
    #expect(try await Self.send(person, type).status == 303)
    let remove = try await Self.form(
      person, "\(draft)/classification?label=internal", "\(draft)/classification/remove")
    #expect(try await Self.send(person, remove).status == 303)
    #expect(try await company.policy().fileTypes.isEmpty)
    let publish = try await Self.form(person, draft, "\(draft)/publish")
    #expect(try await Self.send(person, publish).status == 303)
    let now = try await company.policy()
    #expect(now.fileTypes == [FileType(extension: "dwg", mediaTypes: ["image/x-dwg"])])
    #expect(now.classifications.map(\.id) == ["secret", "board-only"])
  }

  @Test func `a label that a rule of the draft is about stays in it`() async throws {
    let (company, person) = try await Self.company()
    _ = try await company.make(
      "/v1/rules", #"{"id":"r","effect":"forbid","classifications":["secret"],"conditions":[]}"#)
    let draft = "/console/drafts/\(try await company.make("/v1/drafts", "{}"))"
    let remove = try await Self.form(person, "\(draft)/classification?label=secret", "\(draft)/classification/remove")
    let reply = try await Self.send(person, remove)
    #expect(reply.status == 409 && String(decoding: reply.body, as: UTF8.self).contains("A rule is about it."))
  }

  @Test func `what devices made of each setting stands on their pages and in sum`() async throws {
    let (company, person) = try await Self.company()
    try await Self.put(#"{"lockAfterMinutes":5,"allowedServers":["files.example.com"]}"#, company)
    let revision = try await company.policy().revision
    let devices = [try await company.enroll(), try await company.enroll(), try await company.enroll()]
    for (device, settings) in zip(
      devices,
      [
        #"{"ownerActions":"honoured","grace":"honoured","lockAfterMinutes":"refused","allowedServers":"ignored"}"#,
        #"{"ownerActions":"honoured","lockAfterMinutes":"honoured","logLevel":"refused"}"#,
      ])
    {
      let reply = try await company.harness.send(
        .put, "/v1/device/report", token: try await device.token(),
        json: #"{"appliedRevision":\#(revision),"settings":\#(settings)}"#)
      #expect(reply.status == 204)
    }
    let first = try await Self.page(person, "/console/devices/\(devices[0].enrollment.deviceId)")
    for text in ["after 5 minutes", "only files.example.com", ">Refused</span>", ">Ignored</span>", ">Honoured</span>"]
    {
      #expect(first.contains(text), "\(text)")
    }
    let second = try await Self.page(person, "/console/devices/\(devices[1].enrollment.deviceId)")
    #expect(second.contains(">Not said</span>") && second.contains("nothing any more"))
    let third = try await Self.page(person, "/console/devices/\(devices[2].enrollment.deviceId)")
    #expect(third.contains("has not said what it made of the settings") && !third.contains(">Honoured</span>"))
    let sum = try await Self.page(person, "/console/settings/devices")
    for text in [
      ">Refused</span> 1 of 3", ">Honoured</span> 2 of 3", ">Not said</span> 2 of 3", ">Ignored</span> 1 of 3",
    ] {
      #expect(sum.contains(text), "\(text)")
    }
    let exceptions = sum[try #require(sum.range(of: "Where a setting does not hold")).lowerBound...]
    #expect(
      exceptions.contains(devices[0].enrollment.deviceId) && exceptions.contains("What the device logs, set no more"))
    #expect(!exceptions.contains(devices[2].enrollment.deviceId))
    _ = try await company.make("/v1/rules", #"{"id":"r","effect":"forbid","conditions":[]}"#)
    let behind = try await Self.page(person, "/console/devices/\(devices[0].enrollment.deviceId)")
    #expect(behind.contains("The device says this of revision \(revision), by which it decides."))
  }
}
