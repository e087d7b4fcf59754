internal import HTTPTypes
internal import Hummingbird

/// What stands around every page.
extension Console {
  func response(
    _ page: ConsolePage, _ visit: Visit, status: HTTPResponse.Status = .ok, _ headers: HTTPFields = [:]
  ) -> Response {
    ConsoleResponse.page(document(page, visit), status: status, headers: headers)
  }

  private func document(_ page: ConsolePage, _ visit: Visit) -> HTML {
    Tag.html(.lang("en")) {
      Tag.head {
        Tag.meta(.charset("utf-8"))
        Tag.meta(.name("viewport"), .content("width=device-width, initial-scale=1"))
        Tag.meta(.name("color-scheme"), .content("light dark"))
        Tag.title { "\(visit.refusal == nil ? "" : "Not done: ")\(page.title) · Coffer" }
        Tag.link(.rel("stylesheet"), .href(Asset.style.path))
        Tag.script(.src(Asset.script.path), .defer)
      }
      Tag.body(visit.signedIn == nil ? nil : .data(.mark, "\(visit.mark)")) {
        Tag.a(.class("skip"), .href("#main")) { "Skip to the content" }
        header(page, visit)
        Tag.main(.id("main"), .tabIndex(-1)) {
          Tag.h1 { page.title }
          notice(visit)
          errorSummary(visit)
          page.content
        }
        Tag.p(.id("news"), .class("unseen"), .role("status"), .aria(.live, "polite"))
        if let person = visit.signedIn?.administrator { footer(person, visit) }
      }
    }
  }

  private func header(_ page: ConsolePage, _ visit: Visit) -> HTML {
    Tag.header(.class("top")) {
      Tag.a(.class("brand"), .href("/console")) {
        "Coffer"
        if !visit.company.isEmpty { Tag.span(.class("company")) { visit.company } }
      }
      if visit.signedIn != nil { navigation(page.place, visit) }
    }
  }

  /// The areas, and below them the places of the one that the page belongs to.
  @HTMLBuilder private func navigation(_ current: Place?, _ visit: Visit) -> HTML {
    let areas = Area.allCases
      .map { area in (area, area.places.filter { $0.permission.map(visit.may) ?? true }) }
      .filter { !$0.1.isEmpty }
    let here = areas.first { area in current.map(area.1.contains) ?? false }
    Tag.nav(.aria(.label, "Console")) {
      Tag.ul {
        for (area, places) in areas {
          let isHere = area == here?.0
          Tag.li {
            Tag.a(.href(places[0].link), isHere ? .aria(.current, places.count == 1 ? "page" : "true") : nil) {
              area.name(of: places)
            }
          }
        }
      }
    }
    if let (area, places) = here, places.count > 1 {
      Tag.nav(.class("within"), .aria(.label, area.name(of: places))) {
        Tag.ul {
          for place in places {
            Tag.li {
              Tag.a(.href(place.link), place == current ? .aria(.current, "page") : nil) { place.name }
            }
          }
        }
      }
    }
  }

  private func footer(_ person: Administrator, _ visit: Visit) -> HTML {
    Tag.footer {
      Tag.p { "Signed in as \(person.email), \(Words.role(person.role))." }
      Tag.form(.post, .action("/console/sign-out")) {
        Form.token(visit)
        Tag.button(.type("submit"), .class("plain")) { "Sign out" }
      }
    }
  }

  private func notice(_ visit: Visit) -> HTML? {
    guard visit.refusal == nil, visit.call.request.method == .get,
      let notice = visit.values.text("done").flatMap(Notice.init)
    else { return nil }
    return Tag.p(.class("notice"), .role("status"), .tabIndex(-1), .data(.focus, "")) { notice.sentence }
  }

  private func errorSummary(_ visit: Visit) -> HTML? {
    guard let problem = visit.refusal?.problem else { return nil }
    return Tag.div(.class("problem"), .role("alert"), .tabIndex(-1), .data(.focus, "")) {
      Tag.h2 { "This was not done" }
      if problem.fields.isEmpty {
        Tag.p { Words.explanation(of: problem) }
      } else {
        Tag.ul {
          for field in problem.fields {
            Tag.li {
              Tag.a(.href("#\(Form.id(field.field, visit))")) { "\(Words.field(field.field)): \(field.detail)." }
            }
          }
        }
      }
    }
  }

  /// A request that has no page of its own to tell it on.
  func problemPage(_ problem: HTTPProblem, _ visit: Visit) -> Response {
    let title = problem.name == .notFound ? "There is nothing here" : "This was not done"
    let page = ConsolePage(title) {
      Tag.p { Words.explanation(of: problem) }
      Tag.p { Tag.a(.href("/console")) { "Go to the overview" } }
    }
    return response(page, visit, status: problem.name.status, problem.headers)
  }
}
