internal import CofferPolicy
internal import Hummingbird

/// File types that a company adds to those that every device knows.
extension Console {
  var fileTypes: [ConsoleRoute] {
    [
      .page("/console/file-types", .readPolicy, fileTypesPage),
      .change("/console/file-types", .changePolicy, on: fileTypesPage, addFileType),
      .page("/console/file-types/:id", .readPolicy, fileTypePage),
      .change("/console/file-types/:id/change", .changePolicy, on: fileTypePage, changeFileType),
      .change("/console/file-types/:id/remove", .changePolicy, on: fileTypePage, removeFileType),
    ]
  }

  private var fileTypeRoutes: ResourceRoutes<FileType> { ResourceRoutes(server: server, path: "/v1/file-types") }

  @Sendable private func fileTypesPage(_ visit: Visit) async throws -> ConsolePage {
    let tenant = try visit.person().administrator.tenant
    let after = visit.values.text("after").flatMap { Int64($0) } ?? 0
    let types = try await store.read {
      try $0.resources(.fileType, tenant: tenant, after: after, limit: PageRequest.standard + 1)
        .map { (number: $0.number, value: try $0.value.decoded(FileType.self)) }
    }
    return ConsolePage("File types", in: .fileTypes) {
      Tag.p {
        "An app gets a file only when the file is what its name says: a PDF that is called .docx goes nowhere. For the "
          + "usual types, such as pdf, docx or png, devices know what the content looks like. Say it here for others."
      }
      Tag.div(.id("live-types"), .data(.live, "")) {
        if types.isEmpty {
          Tag.p(.class("empty")) { "There is none besides the usual ones." }
        } else {
          DataTable.table("File types", ["File type", "Its content is"]) {
            for type in types.prefix(PageRequest.standard).map(\.value) {
              Tag.tr {
                DataTable.head { Tag.a(.href("/console/file-types/\(type.extension)")) { ".\(type.extension)" } }
                DataTable.cell("Its content is") { RuleWords.list(type.mediaTypes, "or") }
              }
            }
          }
        }
      }
      Paging.next(types, "/console/file-types?after=")
      if visit.may(.changePolicy) {
        let form = Form(visit, "/console/file-types")
        Tag.section(.class("panel"), .aria(.labelledby, "add")) {
          Tag.h2(.id("add")) { "Add a file type" }
          form("Add the file type") {
            form.text("File type", "extension", hint: "How names end, such as dwg.")
            mediaTypes(form, [])
          }
        }
      }
    }
  }

  private func mediaTypes(_ form: Form, _ types: [String]) -> HTML {
    form.text(
      "What its content is", "mediaTypes", types.joined(separator: " "),
      hint: "As the command file --mime-type calls such files, such as image/vnd.dwg. Several with spaces between them."
    )
  }

  @Sendable private func fileTypePage(_ visit: Visit) async throws -> ConsolePage {
    let (id, tenant) = (try visit.call.name(), try visit.person().administrator.tenant)
    let stored = try await store.read { try server.found($0.resource(.fileType, id: id, tenant: tenant)) }
    let (type, tag) = (try stored.decoded(FileType.self), EntityTag(of: stored.body.utf8))
    return ConsolePage("File type .\(type.extension)", in: .fileTypes) {
      if visit.may(.changePolicy) {
        let form = Form(visit, "/console/file-types/\(type.extension)/change")
        Tag.section(.class("panel"), .aria(.labelledby, "change")) {
          Tag.h2(.id("change")) { "Change it" }
          form("Save the file type", match: tag) {
            form.hidden("extension", type.extension)
            mediaTypes(form, type.mediaTypes)
          }
        }
        Tag.section(.class("panel"), .aria(.labelledby, "remove")) {
          Tag.h2(.id("remove")) { "Remove it" }
          Tag.p { "Devices do not know such files any more: no app gets one, whatever its approval says." }
          Form(visit, "/console/file-types/\(type.extension)/remove")(
            "Remove the file type", match: tag, style: "danger"
          ) {}
        }
      } else {
        Tag.p { "Its content is \(RuleWords.list(type.mediaTypes, "or"))." }
      }
    }
  }

  private static func fileType(_ visit: Visit) throws -> JSONValue {
    let type = RuleForm.extensionText(visit.values.text("extension") ?? "")
    guard ContentType.expected(of: type) == nil else {
      throw HTTPProblem.invalid("extension", "is one that every device knows already")
    }
    let contents = visit.values.list("mediaTypes").map { $0.lowercased() }
    guard (1...20).contains(contents.count), contents.allSatisfy({ $0.split(separator: "/").count == 2 }) else {
      throw HTTPProblem.invalid("mediaTypes", "are 1 to 20 such as image/vnd.dwg")
    }
    return .object(["extension": .string(type), "mediaTypes": .texts(contents)])
  }

  @Sendable private func addFileType(_ visit: Visit) async throws -> Outcome {
    _ = try await fileTypeRoutes.make(visit.asking(Self.fileType(visit)), visit.caller())
    return .see("/console/file-types", .policyChanged)
  }

  @Sendable private func changeFileType(_ visit: Visit) async throws -> Outcome {
    _ = try await fileTypeRoutes.replace(visit.asking(Self.fileType(visit)), visit.caller())
    return .see("/console/file-types", .policyChanged)
  }

  @Sendable private func removeFileType(_ visit: Visit) async throws -> Outcome {
    _ = try await fileTypeRoutes.remove(visit.asking(), visit.caller())
    return .see("/console/file-types", .policyChanged)
  }
}
