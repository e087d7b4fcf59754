internal import Hummingbird

/// A form of a page, with labels that belong to their fields, what was typed when it was refused, and why.
struct Form {
  let visit: Visit
  let action: Link

  init(_ visit: Visit, _ action: Link) {
    self.visit = visit
    self.action = action
  }

  /// The one that was refused, if it is this one. Where somebody else has changed the thing meanwhile, the form shows it as it is
  /// now: who sends it once more shall have seen what they replace.
  private var refusal: Visit.Refusal? {
    guard action.text == visit.path, let refusal = visit.refusal,
      ![.preconditionFailed, .preconditionRequired].contains(refusal.problem.name)
    else { return nil }
    return refusal
  }

  static func token(_ visit: Visit) -> HTML? {
    guard let token = visit.signedIn?.csrfToken else { return nil }
    return Tag.input(.type("hidden"), .name("csrf"), .value(token))
  }

  /// The same for a field of the form that `visit` sent as for that field on the page.
  static func id(_ field: String, _ visit: Visit) -> String { id(field, visit.path) }

  private static func id(_ field: String, _ path: String) -> String {
    let form = String(path.map { $0.isLetter || $0.isNumber ? $0 : "-" }.drop { $0 == "-" })
    return "\(form)-\(field.prefix { $0.isLetter || $0.isNumber })"
  }

  /// The element of a field of this form, or of what stands for several.
  func id(_ name: String) -> String { Self.id(name, action.text) }

  /// What was typed into this form, when it was refused.
  var refused: FormValues? { refusal?.values }

  /// - Parameter match: the version of the thing as the page shows it: who sends the form has seen it. One that shows what was typed
  ///   before keeps the version that was seen then.
  /// - Parameter then: other buttons, with what they send as `then`.
  func callAsFunction(
    _ button: String, then: KeyValuePairs<String, String> = [:], match: EntityTag? = nil, style: String = "",
    @HTMLBuilder _ fields: () -> HTML
  ) -> HTML {
    Tag.form(.post, .action(action), .noValidate) {
      Self.token(visit)
      if let match = match?.description {
        Tag.input(.type("hidden"), .name("match"), .value(refusal?.values.text("match") ?? match))
      }
      fields()
      Tag.p(.class("buttons")) {
        Tag.button(.type("submit"), style.isEmpty ? nil : .class(style)) { button }
        for (value, label) in then {
          Tag.button(.type("submit"), .class("plain"), .name("then"), .value(value)) { label }
        }
      }
    }
  }

  func hidden(_ name: String, _ value: String) -> HTML {
    Tag.input(.type("hidden"), .name(name), .value(value))
  }

  enum Kind: String {
    case text, email, password, number, date, code
  }

  func text(
    _ label: String, _ name: String, _ value: String = "", kind: Kind = .text, hint: String? = nil,
    optional: Bool = false, autocomplete: String = "off"
  ) -> HTML {
    let typed = kind == .password ? "" : refusal?.values.exact(name) ?? value
    let problem = problem(name)
    let described = [hint.map { _ in "\(id(name))-hint" }, problem.map { _ in "\(id(name))-problem" }]
      .compactMap(\.self).joined(separator: " ")
    return Tag.div(.class(problem == nil ? "field" : "field wrong")) {
      Tag.label(.for(id(name))) { optional ? "\(label) (optional)" : label }
      if let hint { Tag.p(.class("hint"), .id("\(id(name))-hint")) { hint } }
      if let problem { Tag.p(.class("wrong"), .id("\(id(name))-problem")) { "Not accepted: \(problem)." } }
      Tag.input(
        .id(id(name)), .name(name), .type(kind == .code ? "text" : kind.rawValue), .value(typed),
        .autocomplete(autocomplete), kind == .code ? .inputMode("numeric") : nil,
        kind == .text || kind == .code ? .noSpelling : nil, optional ? nil : .required,
        described.isEmpty ? nil : .aria(.describedby, described),
        problem == nil ? nil : .aria(.invalid, "true"))
    }
  }

  typealias Choice = (value: String, label: String, hint: String?)

  func checkboxes(_ legend: String, _ name: String, _ choices: [Choice], chosen: [String], hint: String? = nil) -> HTML
  {
    choose(legend, name, choices, refusal.map { $0.values.all(name) } ?? chosen, type: "checkbox", hint)
  }

  func radios(_ legend: String, _ name: String, _ choices: [Choice], chosen: String, hint: String? = nil) -> HTML {
    choose(legend, name, choices, refusal.map { $0.values.all(name) } ?? [chosen], type: "radio", hint)
  }

  func checkbox(_ label: String, _ name: String, _ isOn: Bool, hint: String? = nil) -> HTML {
    let chosen = refusal.map { $0.values.isOn(name) } ?? isOn
    return Tag.div(.class("choice")) {
      Tag.input(
        .type("checkbox"), .id(id(name)), .name(name), .value("on"), chosen ? .checked : nil,
        hint == nil ? nil : .aria(.describedby, "\(id(name))-hint"))
      Tag.label(.for(id(name))) { label }
      if let hint { Tag.p(.class("hint"), .id("\(id(name))-hint")) { hint } }
    }
  }

  func select(_ label: String, _ name: String, _ choices: [Choice], chosen: String, hint: String? = nil) -> HTML {
    let chosen = refusal?.values.exact(name) ?? chosen
    return Tag.div(.class("field")) {
      Tag.label(.for(id(name))) { label }
      if let hint { Tag.p(.class("hint"), .id("\(id(name))-hint")) { hint } }
      Tag.select(
        .id(id(name)), .name(name), hint == nil ? nil : .aria(.describedby, "\(id(name))-hint")
      ) {
        for choice in choices {
          Tag.option(.value(choice.value), choice.value == chosen ? .selected : nil) { choice.label }
        }
      }
    }
  }

  private func choose(
    _ legend: String, _ name: String, _ choices: [Choice], _ chosen: [String], type: String, _ hint: String?
  ) -> HTML {
    let problem = problem(name)
    return Tag.fieldset(.id(id(name)), .tabIndex(-1), problem == nil ? nil : .class("wrong")) {
      Tag.legend { legend }
      if let hint { Tag.p(.class("hint")) { hint } }
      if let problem { Tag.p(.class("wrong")) { "Not accepted: \(problem)." } }
      Tag.div(.class("choices")) {
        for (number, choice) in choices.enumerated() {
          let own = "\(id(name))-\(number)"
          Tag.div(.class("choice")) {
            Tag.input(
              .type(type), .id(own), .name(name), .value(choice.value), chosen.contains(choice.value) ? .checked : nil,
              choice.hint == nil ? nil : .aria(.describedby, "\(own)-hint"))
            Tag.label(.for(own)) { choice.label }
            if let hint = choice.hint { Tag.p(.class("hint"), .id("\(own)-hint")) { hint } }
          }
        }
      }
    }
  }

  private func problem(_ name: String) -> String? {
    refusal?.problem.fields.first { $0.field == name || $0.field.hasPrefix("\(name)[") }?.detail
  }
}
