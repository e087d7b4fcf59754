internal import CofferPolicy
internal import Hummingbird

/// Labels that files may carry.
extension Console {
  var classifications: [ConsoleRoute] {
    [
      .page("/console/classifications", .readPolicy, classificationsPage),
      .change("/console/classifications", .changePolicy, on: classificationsPage, addClassification),
      .page("/console/classifications/:id", .readPolicy, classificationPage),
      .change("/console/classifications/:id/change", .changePolicy, on: classificationPage, changeClassification),
      .change("/console/classifications/:id/remove", .changePolicy, on: classificationPage, removeClassification),
    ]
  }

  private var classificationRoutes: ResourceRoutes<Classification> {
    ResourceRoutes(server: server, path: "/v1/classifications")
  }

  @Sendable private func classificationsPage(_ visit: Visit) async throws -> ConsolePage {
    let tenant = try visit.person().administrator.tenant
    let after = try self.after(visit)
    let labels = try await store.read {
      try $0.resources(.classification, tenant: tenant, after: after, limit: PageRequest.standard + 1)
        .map { (number: $0.number, value: try $0.value.decoded(Classification.self)) }
    }
    let more = try next(labels, "/console/classifications", visit)
    return ConsolePage("Classifications", in: .classifications) {
      Tag.p {
        "A label on a file that rules can be about, such as secret. What has a label that is not here is refused."
      }
      Tag.p(.class("caution")) { Words.withoutClassifications }
      Tag.div(.id("live-labels"), .data(.live, "")) {
        if labels.isEmpty {
          Tag.p(.class("empty")) {
            "There is no classification, and none is needed while rules are the same for all files."
          }
        } else {
          DataTable.table("Classifications", ["Classification", "Rules call it"]) {
            for label in labels.prefix(PageRequest.standard).map(\.value) {
              Tag.tr {
                DataTable.head { Tag.a(.href("/console/classifications/\(label.id)")) { label.name } }
                DataTable.cell("Rules call it") { Tag.code { label.id } }
              }
            }
          }
        }
      }
      more
      if visit.may(.changePolicy) {
        let form = Form(visit, "/console/classifications")
        Tag.section(.class("panel"), .aria(.labelledby, "add")) {
          Tag.h2(.id("add")) { "Add a classification" }
          form("Add the classification", then: ["draft": "Put it into a draft to try it first"]) {
            ClassificationFields.html(form, nil)
          }
        }
      }
    }
  }

  @Sendable private func classificationPage(_ visit: Visit) async throws -> ConsolePage {
    let (id, tenant) = (try visit.call.name(), try visit.person().administrator.tenant)
    let (stored, rules) = try await store.read { transaction in
      (
        try server.found(transaction.resource(.classification, id: id, tenant: tenant)),
        try transaction.resources(.rule, tenant: tenant).map { try $0.decoded(Rule.self) }
          .filter { $0.classifications?.contains(id) == true }
      )
    }
    let (label, tag) = (try stored.decoded(Classification.self), EntityTag(of: stored.body.utf8))
    return ConsolePage("Classification \(label.name)", in: .classifications) {
      Tag.section(.class("panel"), .aria(.labelledby, "used")) {
        Tag.h2(.id("used")) { "Rules about it" }
        RuleLinks.html(rules.map(\.id), nothing: "No rule is about it.")
      }
      if visit.may(.changePolicy) {
        let form = Form(visit, "/console/classifications/\(id)/change")
        Tag.section(.class("panel"), .aria(.labelledby, "change")) {
          Tag.h2(.id("change")) { "Change it" }
          form("Save the name", then: ["draft": "Put the change into a draft to try it first"], match: tag) {
            ClassificationFields.html(form, label)
          }
        }
        Tag.section(.class("panel"), .aria(.labelledby, "remove")) {
          Tag.h2(.id("remove")) { "Remove it" }
          if rules.isEmpty {
            Tag.p { "Files that carry it are refused then: devices refuse what has a label that they do not know." }
            Form(visit, "/console/classifications/\(id)/remove")(
              "Remove the classification", then: ["draft": "Remove it in a draft to try that first"], match: tag,
              style: "danger"
            ) {}
          } else {
            Tag.p { "It can be removed when no rule is about it." }
          }
        }
      }
    }
  }

  @Sendable private func addClassification(_ visit: Visit) async throws -> Outcome {
    let label = try ClassificationFields.value(nil, visit)
    if visit.isForDraft {
      return try await prepare("Classification \(label.id)", visit, inPlaceOf: nil) {
        try $0.put(label, in: \.classifications, inPlaceOf: nil)
      }
    }
    _ = try await classificationRoutes.make(visit.asking(JSONValue(encoding: label)), visit.caller())
    return .see("/console/classifications", .policyChanged)
  }

  @Sendable private func changeClassification(_ visit: Visit) async throws -> Outcome {
    let id = try visit.call.name()
    let label = try ClassificationFields.value(id, visit)
    if visit.isForDraft {
      return try await prepare("Classification \(id)", visit, inPlaceOf: inForce(.classification, id)) {
        try $0.put(label, in: \.classifications, inPlaceOf: id)
      }
    }
    _ = try await classificationRoutes.replace(visit.asking(JSONValue(encoding: label)), visit.caller())
    return .see("/console/classifications", .policyChanged)
  }

  @Sendable private func removeClassification(_ visit: Visit) async throws -> Outcome {
    if visit.isForDraft {
      let id = try visit.call.name()
      return try await prepare("Classification \(id)", visit, inPlaceOf: inForce(.classification, id)) {
        try $0.removeClassification(id)
      }
    }
    _ = try await classificationRoutes.remove(visit.asking(), visit.caller())
    return .see("/console/classifications", .policyChanged)
  }
}

/// What a form says of a classification.
enum ClassificationFields {
  /// - Parameter label: nil for a new one.
  @HTMLBuilder static func html(_ form: Form, _ label: Classification?) -> HTML {
    form.text("What people call it", "name", label?.name ?? "", hint: label == nil ? "Such as Secret." : nil)
    if label == nil { form.text("Short name", "id", hint: Words.shortName) }
  }

  /// - Parameter id: nil for a new one, whose form says it.
  static func value(_ id: String?, _ visit: Visit) throws -> Classification {
    try visit.demand("name", "id")
    return Classification(id: id ?? visit.values.text("id") ?? "", name: visit.values.text("name") ?? "")
  }
}

/// The way to rules.
enum RuleLinks {
  static func html(_ ids: [String], nothing: String) -> HTML {
    if ids.isEmpty { return Tag.p(.class("empty")) { nothing } }
    return Tag.ul {
      for id in ids { Tag.li { Tag.a(.href("/console/rules/\(id)")) { id } } }
    }
  }
}
