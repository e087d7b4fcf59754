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
    let after = visit.values.text("after").flatMap { Int64($0) } ?? 0
    let labels = try await store.read {
      try $0.resources(.classification, tenant: tenant, after: after, limit: PageRequest.standard + 1)
        .map { (number: $0.number, value: try $0.value.decoded(Classification.self)) }
    }
    return ConsolePage("Classifications", in: .classifications) {
      Tag.p {
        "A label on a file that rules can be about, such as secret. What has a label that is not here is refused."
      }
      Tag.p(.class("caution")) { Words.withoutClassifications }
      Tag.div(.id("live-labels"), .data(.live, "")) {
        if labels.isEmpty {
          Tag.p(.class("empty")) { "There is none." }
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
      Paging.next(labels, "/console/classifications?after=")
      if visit.may(.changePolicy) {
        let form = Form(visit, "/console/classifications")
        Tag.section(.class("panel"), .aria(.labelledby, "add")) {
          Tag.h2(.id("add")) { "Add a classification" }
          form("Add the classification") {
            form.text("What people call it", "name", hint: "Such as Secret.")
            form.text("Short name", "id", hint: Words.shortName)
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
          form("Save the name", match: tag) { form.text("What people call it", "name", label.name) }
        }
        Tag.section(.class("panel"), .aria(.labelledby, "remove")) {
          Tag.h2(.id("remove")) { "Remove it" }
          if rules.isEmpty {
            Tag.p { "Files that carry it are refused then: devices refuse what has a label that they do not know." }
            Form(visit, "/console/classifications/\(id)/remove")(
              "Remove the classification", match: tag, style: "danger"
            ) {}
          } else {
            Tag.p { "It can be removed when no rule is about it." }
          }
        }
      }
    }
  }

  private static func classification(_ id: String, _ visit: Visit) -> JSONValue {
    .object(["id": .string(id), "name": .string(visit.values.text("name") ?? "")])
  }

  @Sendable private func addClassification(_ visit: Visit) async throws -> Outcome {
    let body = Self.classification(visit.values.text("id") ?? "", visit)
    _ = try await classificationRoutes.make(visit.asking(body), visit.caller())
    return .see("/console/classifications", .policyChanged)
  }

  @Sendable private func changeClassification(_ visit: Visit) async throws -> Outcome {
    let body = Self.classification(try visit.call.name(), visit)
    _ = try await classificationRoutes.replace(visit.asking(body), visit.caller())
    return .see("/console/classifications", .policyChanged)
  }

  @Sendable private func removeClassification(_ visit: Visit) async throws -> Outcome {
    _ = try await classificationRoutes.remove(visit.asking(), visit.caller())
    return .see("/console/classifications", .policyChanged)
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
