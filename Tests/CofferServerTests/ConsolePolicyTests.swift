import CofferAPI
import CofferPolicy
import CofferServerSQLite
import Foundation
import HTTPTypes
import Testing

@testable import CofferServer

/// Drafts, revisions, groups and keys in the console.
@Suite struct ConsolePolicyTests {
  private static let page = ConsoleRuleTests.page

  private static func company() async throws -> (Company, Person) {
    let company = try await ConsoleRuleTests.company(Harness())
    return (company, try await Person(company))
  }

  /// Sends the form of a page that has this action, after `change`.
  private static func send(
    _ person: Person, _ path: String, _ action: String, _ change: (inout ConsoleForm) -> Void = { _ in }
  ) async throws -> Reply {
    var form = try #require(ConsoleForm(try await page(person, path), action: action), "\(path) has no \(action)")
    change(&form)
    return try await ConsoleTests.post(person, form.action, form.sent)
  }

  private static func location(_ reply: Reply) throws -> String {
    #expect(reply.status == 303, "\(String(decoding: reply.body, as: UTF8.self).suffix(3000))")
    return String(try #require(reply.headers[.location]).prefix { $0 != "?" })
  }

  @Test func `a rule that is put into a draft holds when the draft is published`() async throws {
    let (company, person) = try await Self.company()
    let draft = try Self.location(
      try await Self.send(person, "/console/new-rule", "/console/rules") {
        $0.set("id", "no-print")
        $0.set("actions", "print")
        $0.set("then", "draft")
      })
    #expect(draft.hasPrefix("/console/drafts/"))
    #expect(try await company.policy().rules.isEmpty)
    let shown = try await Self.page(person, draft)
    #expect(shown.contains("Rule no-print: Forbids print to every app and the device’s owner."))
    #expect(shown.contains(">New</span>"))
    // The draft's own form changes the draft.
    #expect(
      try Self.location(
        await Self.send(person, "\(draft)/rule?rule=no-print", "\(draft)/rule") { $0.set("actions", "print", "mount") })
        == draft)
    let id = try #require(draft.split(separator: "/").last)
    let question = "by=draft-\(id)&app=&action=mount"
    let answer = try await Self.page(person, "/console/simulator?\(question)")
    #expect(answer.contains("The draft “Rule no-print”") && answer.contains("What is in force now"))
    #expect(answer.contains("rule no-print"))
    #expect(try await company.policy().rules.isEmpty)
    #expect(try Self.location(await Self.send(person, draft, "\(draft)/publish")) == "/console/revisions")
    #expect(try await company.policy().rules.map(\.actions) == [[.print, .mount]])
    #expect(try await Self.page(person, "/console/drafts").contains("There is no draft."))
  }

  @Test func `a change and a removal of a rule can be drafted, and what cannot be leaves no draft`() async throws {
    let (company, person) = try await Self.company()
    _ = try await company.make("/v1/rules", #"{"id":"r","effect":"forbid","actions":["print"],"conditions":[]}"#)
    let change = try Self.location(
      await Self.send(person, "/console/rules/r", "/console/rules/r/change") {
        $0.set("actions", "mount")
        $0.set("then", "draft")
      })
    #expect(
      try await Self.page(person, change).contains(
        "Rule r: Forbids mount to every app and the device’s owner. Before: Forbids print to every app and the device’s "
          + "owner."))
    let removal = try Self.location(
      await Self.send(person, "/console/rules/r", "/console/rules/r/remove") { $0.set("then", "draft") })
    #expect(try await Self.page(person, removal).contains(">Gone</span>"))
    let count = { try await company.harness.store.read { try $0.countResources(.draft, tenant: company.tenant.id) } }
    #expect(try await count() == 2)
    let taken = try await Self.send(person, "/console/new-rule", "/console/rules") {
      $0.set("id", "r")
      $0.set("then", "draft")
    }
    #expect(taken.status == 422 && String(decoding: taken.body, as: UTF8.self).contains("is the name of another rule"))
    #expect(try await count() == 2)
    #expect(try await company.policy().rules.map(\.actions) == [[.print]])
  }

  @Test func `a draft that another revision overtook says so, and goes on as a new one`() async throws {
    let (company, person) = try await Self.company()
    let empty = try Self.location(
      await Self.send(person, "/console/drafts", "/console/drafts") { $0.set("note", "for March") })
    #expect(!(try await Self.page(person, empty)).contains("/publish"))
    let draft = try Self.location(
      await Self.send(person, "/console/new-rule", "/console/rules") {
        $0.set("id", "own")
        $0.set("then", "draft")
      })
    let publish = try #require(ConsoleForm(try await Self.page(person, draft), action: "\(draft)/publish"))
    _ = try await company.make("/v1/rules", #"{"id":"r","effect":"forbid","actions":["print"],"conditions":[]}"#)
    #expect(try await ConsoleTests.post(person, publish.action, publish.sent).status == 409)
    let shown = try await Self.page(person, draft)
    #expect(shown.contains("It cannot be published as it is") && !shown.contains("action=\"\(draft)/publish\""))
    #expect(shown.contains(">Gone</span> Rule r: Forbids print"))
    let renewed = try Self.location(await Self.send(person, draft, "\(draft)/renew"))
    #expect(renewed != draft)
    #expect(try Self.location(await Self.send(person, renewed, "\(renewed)/publish")) == "/console/revisions")
    #expect(try await company.policy().rules.map(\.id) == ["own"])
  }

  @Test func `a draft that another has made anew is still its writer's`() async throws {
    let (company, person) = try await Self.company()
    let other = try await Person(company)
    let settings: HTTPFields = [.ifMatch: try await company.tag("/v1/approval-settings")]
    #expect(
      try await person.send(.put, "/v1/approval-settings", json: #"{"twoPeople":true}"#, headers: settings).status
        == 200)
    let draft = try Self.location(
      await Self.send(person, "/console/new-rule", "/console/rules") {
        $0.set("id", "own")
        $0.set("effect", "permit")
        $0.set("then", "draft")
      })
    func isOffered(_ draft: String, to person: Person) async throws -> Bool {
      try await Self.page(person, draft).contains("action=\"\(draft)/publish\"")
    }
    _ = try await company.make("/v1/classifications", #"{"id":"c","name":"C"}"#)
    let renewed = try Self.location(await Self.send(other, draft, "\(draft)/renew"))
    #expect(try await !isOffered(renewed, to: person))
    #expect(try await isOffered(renewed, to: other))
    // What would lift a prohibition that came since is of who has it made anew, too.
    _ = try await company.make("/v1/rules", #"{"id":"r","effect":"forbid","actions":["print"],"conditions":[]}"#)
    let lifting = try Self.location(await Self.send(other, renewed, "\(renewed)/renew"))
    #expect(try await !isOffered(lifting, to: person))
    #expect(try await !isOffered(lifting, to: other))
    let third = try await Person(company)
    #expect(try Self.location(await Self.send(third, lifting, "\(lifting)/publish")) == "/console/revisions")
  }

  @Test func `a list of revisions says what each changed, and the way back is a new one`() async throws {
    let (company, person) = try await Self.company()
    _ = try await company.make("/v1/rules", #"{"id":"r","effect":"forbid","actions":["print"],"conditions":[]}"#)
    let before = try await company.policy()
    let app = try await company.add("com.acme.writer")
    var settings = before.settings
    settings.ownerActions = [.view, .saveCopy]
    settings.allowFilteredTier = true
    let json = String(decoding: try JSONEncoder().encode(settings), as: UTF8.self)
    #expect(try await company.harness.send(.put, "/v1/settings", token: company.owner, json: json).status == 200)
    let managed: HTTPFields = [.ifMatch: try await company.tag("/v1/managed-settings")]
    let profile = try await company.harness.send(
      .put, "/v1/managed-settings", token: company.owner, headers: managed, json: #"{"lockAfterMinutes":5}"#)
    #expect(profile.status == 200, "\(String(decoding: profile.body, as: UTF8.self))")
    let headers: HTTPFields = [.ifMatch: try await company.tag("/v1/keys")]
    _ = try await company.harness.send(.post, "/v1/keys/rotate", token: company.owner, headers: headers)
    let list = try await Self.page(person, "/console/revisions")
    for text in [
      "Rule r: Forbids print to every app and the device’s owner.",
      "App \(app.name): com.acme.writer of ACME, filtered",
      "The person with the device may view, save a copy. Before: view, edit in place, import.",
      "Apps that are only a name may get files, and might not before.", "The signing key: epoch 2, before it 1.",
      "Setting of devices, lock without use: after 5 minutes.",
      "The company’s first policy.", "Classification secret: “Secret”.",
    ] { #expect(list.contains(text), "\(text)") }

    let path = "/console/revisions/\(before.revision)"
    let earlier = try await Self.page(person, path)
    #expect(earlier.contains("Going back to it would change") && earlier.contains(">Gone</span> App \(app.name)"))
    #expect(!earlier.contains("The signing key: epoch 1"))
    #expect(try Self.location(await Self.send(person, path, "\(path)/restore")) == "/console/revisions")
    let now = try await company.policy()
    #expect(now.apps.isEmpty && now.settings == before.settings && now.rules == before.rules)
    #expect(now.revision == before.revision + 5 && now.keyEpoch == 2)
    #expect(!(try await Self.page(person, "/console/revisions/\(now.revision)")).contains("/restore"))
  }

  @Test func `what is out of step with the newest revision is not restored unseen`() async throws {
    let (company, person) = try await Self.company()
    _ = try await company.make("/v1/rules", #"{"id":"r","effect":"forbid","conditions":[]}"#)
    let path = "/console/revisions/1"
    let form = try #require(ConsoleForm(try await Self.page(person, path), action: "\(path)/restore"))
    _ = try await company.make("/v1/rules", #"{"id":"s","effect":"forbid","conditions":[]}"#)
    #expect(try await ConsoleTests.post(person, form.action, form.sent).status == 412)
    #expect(try await company.policy().rules.count == 2)
  }

  @Test func `groups are set from either side, and one leaves the others as they are`() async throws {
    let (company, person) = try await Self.company()
    let device = try await company.enroll().enrollment.deviceId
    let groups = {
      try await company.harness.store.read { try $0.deviceState(tenant: company.tenant.id, id: device)?.groups ?? [] }
    }
    let devicePath = "/console/devices/\(device)"
    #expect(
      try Self.location(
        await Self.send(person, devicePath, "\(devicePath)/groups") { $0.set("groups", "board") }) == devicePath)
    #expect(try await groups() == ["board"])
    let path = "/console/groups/sales"
    #expect(try Self.location(await Self.send(person, path, "\(path)/put")) == path)
    #expect(try await groups() == ["board", "sales"])
    #expect(try Self.location(await Self.send(person, "/console/groups/board", "/console/groups/board/take")) != path)
    #expect(try await groups() == ["sales"])
    // One that is gone does not stand in the way of the next change.
    let headers: HTTPFields = [.ifMatch: try await company.tag("/v1/groups/sales")]
    _ = try await company.harness.send(.delete, "/v1/groups/sales", token: company.owner, headers: headers)
    #expect(
      try Self.location(await Self.send(person, "/console/groups/board", "/console/groups/board/put"))
        == "/console/groups/board")
    #expect(try await groups() == ["board"])
  }

  @Test func `of a device that has said nothing, nothing is said but that`() async throws {
    let (company, person) = try await Self.company()
    let device = try await company.enroll()
    let path = "/console/devices/\(device.enrollment.deviceId)"
    let pages = ["/console/devices", path, "\(path)/wipe", "/console"]
    func texts() async throws -> [String] {
      var texts: [String] = []
      for path in pages { texts.append(try await Self.page(person, path)) }
      return texts
    }
    let before = try await texts()
    #expect(before[0].contains("Not known") && before[1].contains("Not known"))
    #expect(before[1].contains(Words.notReported) && before[2].contains(Words.notReported))
    #expect(before[3].contains("the device has not said by which it decides"))
    #expect(!before.contains { $0.contains("Behind") || $0.contains("Up to date</span>") })
    let newest = try await company.policy().revision
    for (applied, badge) in [(newest, "Up to date</span>"), (newest - 1, "Behind</span>")] {
      let report = try await company.harness.send(
        .put, "/v1/device/report", token: try await device.token(), json: #"{"appliedRevision":\#(applied)}"#)
      #expect(report.status == 204)
      let after = try await texts()
      #expect(after[0].contains(badge) && after[1].contains(badge))
      #expect(!after.contains { $0.contains("Not known") || $0.contains(Words.notReported) })
    }
  }

  @Test func `the audit says what was added, changed and removed`() async throws {
    let (company, person) = try await Self.company()
    let headers: HTTPFields = [.ifMatch: try await company.tag("/v1/groups/sales")]
    _ = try await company.harness.send(.delete, "/v1/groups/sales", token: company.owner, headers: headers)
    _ = try await company.make("/v1/drafts", "{}")
    let page = try await Self.page(person, "/console/audit")
    for text in ["Added a group of devices", "Removed a group of devices", "Added a classification", "Added a draft"] {
      #expect(page.contains(text))
    }
  }

  @Test func `a question that cannot be understood is not taken for another one`() async throws {
    let (_, person) = try await Self.company()
    for query in ["app=gone", "at=tomorrow", "days=-1", "days=many"] {
      let page = try await Self.page(person, "/console/simulator?action=mount&\(query)")
      #expect(page.contains("This cannot be asked") && !page.contains("class=\"answer"), "\(query)")
    }
  }

  @Test func `a classification that rules are about is not offered for removal`() async throws {
    let (company, person) = try await Self.company()
    let path = "/console/classifications/secret"
    #expect(try await Self.page(person, path).contains("\(path)/remove"))
    _ = try await company.make(
      "/v1/rules", #"{"id":"r","effect":"forbid","classifications":["secret"],"conditions":[]}"#)
    let page = try await Self.page(person, path)
    #expect(!page.contains("\(path)/remove") && page.contains("/console/rules/r"))
  }

  @Test func `a file type that every device knows is none to add`() async throws {
    let (company, person) = try await Self.company()
    for (type, content, status) in [
      ("pdf", "application/pdf", 422), ("dwg", "drawing", 422), ("dwg", "", 422), (".DWG", "image/vnd.dwg", 303),
    ] {
      let reply = try await Self.send(person, "/console/file-types", "/console/file-types") {
        $0.set("extension", type)
        $0.set("mediaTypes", content)
      }
      #expect(reply.status == status, "\(type) \(content)")
    }
    #expect(try await company.policy().fileTypes == [FileType(extension: "dwg", mediaTypes: ["image/vnd.dwg"])])
  }

  @Test func `the root key is a file, once, and what was typed for it never comes back`() async throws {
    let (company, person) = try await Self.company()
    func export(_ password: String, _ again: String) async throws -> Reply {
      try await Self.send(person, "/console/keys", "/console/keys/export") {
        $0.set("password", password)
        $0.set("passphrase", "a phrase for the safe")
        $0.set("again", again)
      }
    }
    for (password, again) in [("wrong horse battery", "a phrase for the safe"), (Person.password, "another phrase")] {
      let reply = try await export(password, again)
      #expect(reply.status == (again == "another phrase" ? 422 : 401))
      let page = String(decoding: reply.body, as: UTF8.self)
      #expect(page.contains("This was not done") && !page.contains(password) && !page.contains("phrase for the safe"))
      ConsoleTests.expectSafe(reply)
    }
    let reply = try await export(Person.password, "a phrase for the safe")
    #expect(reply.status == 200)
    #expect(reply.headers[.contentDisposition] == #"attachment; filename="coffer-root-key.json""#)
    #expect(String(decoding: reply.body, as: UTF8.self).contains(company.tenant.keys.root.text))
    ConsoleTests.expectSafe(reply)
    #expect(!(try await Self.page(person, "/console/keys")).contains("/console/keys/export"))
  }

  @Test func `a key that is changed is a new epoch, and an auditor reads of keys without changing any`() async throws {
    let (company, person) = try await Self.company()
    #expect(
      try Self.location(await Self.send(person, "/console/keys", "/console/keys/rotate")) == "/console/keys")
    #expect(try await company.policy().keyEpoch == 2)
    let page = try await Self.page(try await Person(company, .auditor), "/console/keys")
    #expect(page.contains("Epoch") && !page.contains("<form method=\"post\" action=\"/console/keys"))
  }

  @Test func `an approval that gives nothing says so`() async throws {
    let (company, person) = try await Self.company()
    let id = try await company.make("/v1/apps", Company.app("com.acme.plain"))
    #expect(try await Self.page(person, "/console/apps/\(id)").contains("devices give this app nothing"))
    let headers: HTTPFields = [.ifMatch: try await company.tag("/v1/settings")]
    let settings = try await company.harness.send(
      .put, "/v1/settings", token: company.owner, headers: headers,
      json: #"{"ownerActions":[],"allowFilteredTier":true}"#)
    #expect(settings.status == 200)
    #expect(!(try await Self.page(person, "/console/apps/\(id)")).contains("devices give this app nothing"))
  }

  private static func askTwo(_ company: Company) async throws {
    let reply = try await company.harness.send(
      .put, "/v1/approval-settings", token: company.owner,
      headers: [.ifMatch: try await company.tag("/v1/approval-settings")], json: #"{"twoPeople":true}"#)
    #expect(reply.status == 200)
  }

  @Test func `where two people are asked, groups are asked for by one and made by another`() async throws {
    let (company, first) = try await Self.company()
    let second = try await Person(company, .editor)
    _ = try await company.make(
      "/v1/rules", #"{"id":"r","effect":"forbid","groups":["board"],"conditions":[]}"#)
    let path = "/console/devices/\(try await company.enroll().enrollment.deviceId)"
    try await Self.askTwo(company)
    let asked = try await Self.send(first, path, "\(path)/groups") { $0.set("groups", "board") }
    #expect(asked.headers[.location] == "\(path)?done=groups-asked")
    let own = try await Self.page(first, path)
    #expect(own.contains("asks that the device be of “Board”") && own.contains("another administrator makes it so"))
    #expect(!own.contains(">Make it so<"))
    #expect(try await Self.page(second, "/console").contains("a change of its groups waits for a second person"))
    let other = try await Self.page(second, path)
    #expect(other.contains(">Make it so<"))
    // The first form of the page that goes there is that of the request.
    let made = try await Self.send(second, path, "\(path)/groups")
    #expect(made.headers[.location] == "\(path)?done=groups-changed")
    #expect(!(try await Self.page(second, path)).contains("asks that the device be"))
  }

  @Test func `where two people are asked, a draft says who publishes it`() async throws {
    let (company, first) = try await Self.company()
    let second = try await Person(company, .editor)
    try await Self.askTwo(company)
    let refused = try await Self.send(first, "/console/settings", "/console/settings/owner") {
      $0.set("ownerActions", "saveCopy")
    }
    let page = String(decoding: refused.body, as: UTF8.self)
    #expect(refused.status == 409 && page.contains("write a draft, which another publishes"))
    let draft = try Self.location(
      await Self.send(first, "/console/settings", "/console/settings/owner") {
        $0.set("ownerActions", "saveCopy")
        $0.set("then", "draft")
      })
    let own = try await Self.page(first, draft)
    #expect(own.contains("another administrator publishes it.") && !own.contains("\(draft)/publish"))
    // What a token wrote nobody can publish, and nobody is told to.
    let written = try await second.send(.get, "/v1" + draft.dropFirst("/console".count)).json(PolicyDraft.self)
    let content = String(decoding: try JSONEncoder().encode(written.content), as: UTF8.self)
    let body = #"{"content":\#(content)}"#
    let nobodys = "/console/drafts/" + (try await company.make("/v1/drafts", body))
    let shown = try await Self.page(second, nobodys)
    #expect(shown.contains("nobody can publish it") && !shown.contains("\(nobodys)/publish"))
    #expect(try await Self.page(second, draft).contains("you can publish it"))
    #expect(try Self.location(await Self.send(second, draft, "\(draft)/publish")) == "/console/revisions")
    #expect(try await company.policy().settings.ownerActions == [.saveCopy])
  }
}
