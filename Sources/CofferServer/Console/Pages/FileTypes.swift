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
    let after = try self.after(visit)
    let types = try await store.read {
      try $0.resources(.fileType, tenant: tenant, after: after, limit: PageRequest.standard + 1)
        .map { (number: $0.number, value: try $0.value.decoded(FileType.self)) }
    }
    let more = try next(types, "/console/file-types", visit)
    return ConsolePage("File types", in: .fileTypes) {
      Tag.p {
        "An app gets a file only when the file is what its name says: a PDF that is called .docx goes nowhere. For the "
          + "usual types, such as pdf, docx or png, devices know what the content looks like. Say it here for others."
      }
      Tag.div(.id("live-types"), .data(.live, "")) {
        if types.isEmpty {
          Tag.p(.class("empty")) {
            "There is none besides the usual ones. Add one below when an app is refused files of a type of its own."
          }
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
      more
      if visit.may(.changePolicy) {
        let form = Form(visit, "/console/file-types")
        Tag.section(.class("panel"), .aria(.labelledby, "add")) {
          Tag.h2(.id("add")) { "Add a file type" }
          form("Add the file type", then: ["draft": "Put it into a draft to try it first"]) {
            FileTypeFields.html(form, nil)
          }
        }
      }
    }
  }

  @Sendable private func fileTypePage(_ visit: Visit) async throws -> ConsolePage {
    let (id, tenant) = (try visit.call.name(PolicyText.isExtension), try visit.person().administrator.tenant)
    let stored = try await store.read { try server.found($0.resource(.fileType, id: id, tenant: tenant)) }
    let (type, tag) = (try stored.decoded(FileType.self), EntityTag(of: stored.body.utf8))
    return ConsolePage("File type .\(type.extension)", in: .fileTypes) {
      if visit.may(.changePolicy) {
        let form = Form(visit, "/console/file-types/\(type.extension)/change")
        Tag.section(.class("panel"), .aria(.labelledby, "change")) {
          Tag.h2(.id("change")) { "Change it" }
          form("Save the file type", then: ["draft": "Put the change into a draft to try it first"], match: tag) {
            FileTypeFields.html(form, type)
          }
        }
        Tag.section(.class("panel"), .aria(.labelledby, "remove")) {
          Tag.h2(.id("remove")) { "Remove it" }
          Tag.p { "Devices do not know such files any more: no app gets one, whatever its approval says." }
          Form(visit, "/console/file-types/\(type.extension)/remove")(
            "Remove the file type", then: ["draft": "Remove it in a draft to try that first"], match: tag,
            style: "danger"
          ) {}
        }
      } else {
        Tag.p { "Its content is \(RuleWords.list(type.mediaTypes, "or"))." }
      }
    }
  }

  @Sendable private func addFileType(_ visit: Visit) async throws -> Outcome {
    let type = try FileTypeFields.value(visit)
    if visit.isForDraft {
      return try await prepare("File type .\(type.extension)", visit, inPlaceOf: nil) {
        try $0.put(type, in: \.fileTypes, inPlaceOf: nil)
      }
    }
    _ = try await fileTypeRoutes.make(visit.asking(JSONValue(encoding: type)), visit.caller())
    return .see("/console/file-types", .policyChanged)
  }

  @Sendable private func changeFileType(_ visit: Visit) async throws -> Outcome {
    let type = try FileTypeFields.value(visit)
    if visit.isForDraft {
      let name = try visit.call.name()
      return try await prepare("File type .\(name)", visit, inPlaceOf: inForce(.fileType, name)) {
        try $0.put(type, in: \.fileTypes, inPlaceOf: name)
      }
    }
    _ = try await fileTypeRoutes.replace(visit.asking(JSONValue(encoding: type)), visit.caller())
    return .see("/console/file-types", .policyChanged)
  }

  @Sendable private func removeFileType(_ visit: Visit) async throws -> Outcome {
    if visit.isForDraft {
      let name = try visit.call.name()
      return try await prepare("File type .\(name)", visit, inPlaceOf: inForce(.fileType, name)) {
        try $0.put(nil as FileType?, in: \.fileTypes, inPlaceOf: name)
      }
    }
    _ = try await fileTypeRoutes.remove(visit.asking(), visit.caller())
    return .see("/console/file-types", .policyChanged)
  }
}

/// What a form says of a file type.
enum FileTypeFields {
  /// - Parameter type: nil for a new one.
  @HTMLBuilder static func html(_ form: Form, _ type: FileType?) -> HTML {
    if let type {
      form.hidden("extension", type.extension)
    } else {
      form.text("File type", "extension", hint: "How names end, such as dwg.")
    }
    form.text(
      "What its content is", "mediaTypes", (type?.mediaTypes ?? []).joined(separator: " "),
      hint: "As the command file --mime-type calls such files, such as image/vnd.dwg. Several with spaces between them."
    )
  }

  static func value(_ visit: Visit) throws -> FileType {
    try visit.demand("extension", "mediaTypes")
    let type = RuleForm.extensionText(visit.values.text("extension") ?? "")
    guard ContentType.expected(of: type) == nil else {
      throw HTTPProblem.invalid("extension", "is one that every device knows already")
    }
    let contents = visit.values.list("mediaTypes").map { $0.lowercased() }
    guard (1...20).contains(contents.count), contents.allSatisfy({ $0.split(separator: "/").count == 2 }) else {
      throw HTTPProblem.invalid("mediaTypes", "are 1 to 20 such as image/vnd.dwg")
    }
    return FileType(extension: type, mediaTypes: contents)
  }
}
