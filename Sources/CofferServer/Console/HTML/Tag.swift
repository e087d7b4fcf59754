/// An element's name. These are all there are: none that runs what stands in it.
struct Tag: Sendable {
  let name: String
  /// Whether the element has no content and no end.
  let isVoid: Bool

  private init(_ name: String, isVoid: Bool = false) {
    self.name = name
    self.isVoid = isVoid
  }

  func callAsFunction(_ attributes: Attribute?..., @HTMLBuilder content: () -> HTML) -> HTML {
    .element(self, attributes.compactMap(\.self), [content()])
  }

  func callAsFunction(_ attributes: Attribute?...) -> HTML {
    .element(self, attributes.compactMap(\.self), [])
  }

  static let html = Tag("html")
  static let head = Tag("head")
  static let title = Tag("title")
  static let meta = Tag("meta", isVoid: true)
  static let link = Tag("link", isVoid: true)
  /// Always with a `src`, and empty.
  static let script = Tag("script")
  static let body = Tag("body")
  static let header = Tag("header")
  static let nav = Tag("nav")
  static let main = Tag("main")
  static let footer = Tag("footer")
  static let section = Tag("section")
  static let div = Tag("div")
  static let h1 = Tag("h1")
  static let h2 = Tag("h2")
  static let h3 = Tag("h3")
  static let p = Tag("p")
  static let a = Tag("a")
  static let ul = Tag("ul")
  static let ol = Tag("ol")
  static let li = Tag("li")
  static let dl = Tag("dl")
  static let dt = Tag("dt")
  static let dd = Tag("dd")
  static let table = Tag("table")
  static let caption = Tag("caption")
  static let thead = Tag("thead")
  static let tbody = Tag("tbody")
  static let tr = Tag("tr")
  static let th = Tag("th")
  static let td = Tag("td")
  static let form = Tag("form")
  static let fieldset = Tag("fieldset")
  static let legend = Tag("legend")
  static let label = Tag("label")
  static let input = Tag("input", isVoid: true)
  static let select = Tag("select")
  static let option = Tag("option")
  static let button = Tag("button")
  static let details = Tag("details")
  static let summary = Tag("summary")
  static let span = Tag("span")
  static let strong = Tag("strong")
  static let code = Tag("code")
  static let time = Tag("time")
  static let svg = Tag("svg")
  static let path = Tag("path")
  static let rect = Tag("rect")
}
