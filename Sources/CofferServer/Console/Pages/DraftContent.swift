internal import CofferPolicy
internal import Hummingbird

/// What a draft holds beside its rules: file types, classifications and settings.
extension Console {
  var draftContents: [ConsoleRoute] {
    [
      .page("/console/drafts/:id/file-type", .changePolicy, draftTypePage),
      .change("/console/drafts/:id/file-type", .changePolicy, on: draftTypePage, saveDraftType),
      .change("/console/drafts/:id/file-type/remove", .changePolicy, on: draftTypePage, removeDraftType),
      .page("/console/drafts/:id/classification", .changePolicy, draftLabelPage),
      .change("/console/drafts/:id/classification", .changePolicy, on: draftLabelPage, saveDraftLabel),
      .change("/console/drafts/:id/classification/remove", .changePolicy, on: draftLabelPage, removeDraftLabel),
      .page("/console/drafts/:id/settings", .changePolicy, draftSettingsPage),
      .change("/console/drafts/:id/settings/owner", .changePolicy, on: draftSettingsPage) { visit in
        let settings = try SettingFields.owner(visit)
        return try await changeDraft(visit) { $0.setOwner(settings) }
      },
      .change("/console/drafts/:id/settings/grace", .changePolicy, on: draftSettingsPage) { visit in
        let grace = try SettingFields.grace(visit)
        return try await changeDraft(visit) { $0.grace = grace }
      },
      .change("/console/drafts/:id/settings/managed", .changePolicy, on: draftSettingsPage) { visit in
        let values = try ManagedFields.values(visit)
        return try await changeDraft(visit) { $0.setManaged(values) }
      },
    ]
  }

  /// On the draft's page: all that it says, and the way to change each part.
  @HTMLBuilder func draftContent(_ shown: ShownDraft, _ visit: Visit) -> HTML {
    let (content, id) = (shown.draft.content, shown.draft.id)
    let mayChange = visit.may(.changePolicy)
    Tag.section(.class("panel"), .aria(.labelledby, "rules")) {
      Tag.h2(.id("rules")) { "Its rules" }
      if content.rules.isEmpty {
        Tag.p(.class("empty")) { "It has no rule." }
      } else {
        RuleTable(names: shown.names, caption: "Rules of the draft").html(content.rules) { rule in
          mayChange ? ("/console/drafts/\(id)/rule" as Link).asking(["rule": rule.id]) : nil
        }
      }
      if mayChange { add("Add a rule to the draft", "/console/drafts/\(id)/rule") }
    }
    Tag.section(.class("panel"), .aria(.labelledby, "settings")) {
      Tag.h2(.id("settings")) { "Its settings" }
      PolicyFacts.settings(content)
      if mayChange { add("Change the settings of the draft", "/console/drafts/\(id)/settings") }
    }
    Tag.section(.class("panel"), .aria(.labelledby, "types")) {
      Tag.h2(.id("types")) { "Its file types" }
      names(
        content.fileTypes.map { ($0.extension, ".\($0.extension)", RuleWords.list($0.mediaTypes, "or")) },
        "Besides the usual ones it has none.", "type", mayChange ? "/console/drafts/\(id)/file-type" : nil)
      if mayChange { add("Add a file type to the draft", "/console/drafts/\(id)/file-type") }
    }
    Tag.section(.class("panel"), .aria(.labelledby, "labels")) {
      Tag.h2(.id("labels")) { "Its classifications" }
      names(
        content.classifications.map { ($0.id, $0.name, "rules call it \($0.id)") }, "It has none.", "label",
        mayChange ? "/console/drafts/\(id)/classification" : nil)
      if mayChange { add("Add a classification to the draft", "/console/drafts/\(id)/classification") }
    }
    Tag.p(.class("hint")) {
      "Approvals of apps and groups of devices are in no draft: a change of them holds as soon as it is saved, whatever "
        + "becomes of the draft."
    }
  }

  private func add(_ text: String, _ link: Link) -> HTML {
    Tag.p { Tag.a(.class("button plain"), .href(link)) { text } }
  }

  private func names(
    _ names: [(id: String, name: String, meaning: String)], _ nothing: String, _ field: String, _ link: Link?
  ) -> HTML {
    if names.isEmpty { return Tag.p(.class("empty")) { nothing } }
    return Tag.ul {
      for one in names {
        Tag.li {
          if let link {
            Tag.a(.href(link.asking([field: one.id]))) { one.name }
          } else {
            one.name
          }
          ": \(one.meaning)"
        }
      }
    }
  }

  private func about(_ shown: ShownDraft) -> HTML {
    Tag.p {
      "This is about the draft "
      Tag.a(.href("/console/drafts/\(shown.draft.id)")) { "“\(shown.draft.title)”" }
      ". Nothing of it holds until it is published."
    }
  }

  @Sendable private func draftTypePage(_ visit: Visit) async throws -> ConsolePage {
    let (shown, name) = (try await shownDraft(visit), visit.values.text("type"))
    let type = shown.draft.content.fileTypes.first { $0.extension == name }
    if name != nil && type == nil { throw HTTPProblem.notFound }
    let form = Form(visit, "/console/drafts/\(shown.draft.id)/file-type")
    return ConsolePage(
      type.map { "File type .\($0.extension) of a draft" } ?? "Add a file type to a draft", in: .drafts
    ) {
      about(shown)
      Tag.section(.class("panel"), .aria(.labelledby, "type")) {
        Tag.h2(.id("type")) { type == nil ? "The file type" : "Change it" }
        form(type == nil ? "Add the file type to the draft" : "Save the file type in the draft", match: shown.tag) {
          if let type { form.hidden("type", type.extension) }
          FileTypeFields.html(form, type)
        }
      }
      if let type {
        let remove = Form(visit, "/console/drafts/\(shown.draft.id)/file-type/remove")
        remove("Remove the file type from the draft", match: shown.tag, style: "danger") {
          remove.hidden("type", type.extension)
        }
      }
    }
  }

  @Sendable private func saveDraftType(_ visit: Visit) async throws -> Outcome {
    let type = try FileTypeFields.value(visit)
    return try await changeDraft(visit) { try $0.put(type, in: \.fileTypes, inPlaceOf: visit.values.text("type")) }
  }

  @Sendable private func removeDraftType(_ visit: Visit) async throws -> Outcome {
    guard let name = visit.values.text("type") else { throw HTTPProblem.notFound }
    return try await changeDraft(visit) { try $0.put(nil as FileType?, in: \.fileTypes, inPlaceOf: name) }
  }

  @Sendable private func draftLabelPage(_ visit: Visit) async throws -> ConsolePage {
    let (shown, id) = (try await shownDraft(visit), visit.values.text("label"))
    let label = shown.draft.content.classifications.first { $0.id == id }
    if id != nil && label == nil { throw HTTPProblem.notFound }
    let form = Form(visit, "/console/drafts/\(shown.draft.id)/classification")
    let title = label.map { "Classification \($0.name) of a draft" } ?? "Add a classification to a draft"
    return ConsolePage(title, in: .drafts) {
      about(shown)
      Tag.section(.class("panel"), .aria(.labelledby, "label")) {
        Tag.h2(.id("label")) { label == nil ? "The classification" : "Change it" }
        form(
          label == nil ? "Add the classification to the draft" : "Save the classification in the draft",
          match: shown.tag
        ) {
          if let label { form.hidden("label", label.id) }
          ClassificationFields.html(form, label)
        }
      }
      if let label {
        let remove = Form(visit, "/console/drafts/\(shown.draft.id)/classification/remove")
        remove("Remove the classification from the draft", match: shown.tag, style: "danger") {
          remove.hidden("label", label.id)
        }
      }
    }
  }

  @Sendable private func saveDraftLabel(_ visit: Visit) async throws -> Outcome {
    let id = visit.values.text("label")
    let label = try ClassificationFields.value(id, visit)
    return try await changeDraft(visit) { try $0.put(label, in: \.classifications, inPlaceOf: id) }
  }

  @Sendable private func removeDraftLabel(_ visit: Visit) async throws -> Outcome {
    guard let id = visit.values.text("label") else { throw HTTPProblem.notFound }
    return try await changeDraft(visit) { try $0.removeClassification(id) }
  }

  @Sendable private func draftSettingsPage(_ visit: Visit) async throws -> ConsolePage {
    let shown = try await shownDraft(visit)
    let (content, draft) = (shown.draft.content, shown.draft.id)
    func part(_ id: String, _ title: String, _ button: String, fields: (Form) -> HTML) -> HTML {
      let form = Form(visit, "/console/drafts/\(draft)/settings/\(id)")
      return Tag.section(.class("panel"), .aria(.labelledby, id)) {
        Tag.h2(.id(id)) { title }
        form(button, match: shown.tag) { fields(form) }
      }
    }
    return ConsolePage("Settings of a draft", in: .drafts) {
      about(shown)
      part("owner", "What the person with the device may do", "Save what the person may do in the draft") {
        SettingFields(form: $0).owner(content.settings)
      }
      part("grace", "Devices without news", "Save the times in the draft") {
        SettingFields(form: $0).grace(content.grace)
      }
      part("managed", "How devices are set", "Save how devices are set in the draft") {
        ManagedFields(form: $0, values: content.settings.managed ?? [:]).html
      }
    }
  }
}

extension PolicyContent {
  /// Throws a problem when a rule is about it.
  mutating func removeClassification(_ id: String) throws {
    guard !rules.contains(where: { $0.classifications?.contains(id) == true }) else {
      throw HTTPProblem(.conflict, "A rule is about it. Change the rule first.")
    }
    try put(nil as Classification?, in: \.classifications, inPlaceOf: id)
  }
}
