internal import CofferPolicy
internal import Hummingbird

/// Tables that become lists of cards on a phone: each cell says again which column it is of.
enum DataTable {
  static func table(_ caption: String, _ columns: [String], @HTMLBuilder rows: () -> HTML) -> HTML {
    Tag.table {
      Tag.caption(.class("unseen")) { caption }
      Tag.thead {
        Tag.tr {
          for column in columns { Tag.th(.scope("col")) { column } }
        }
      }
      Tag.tbody { rows() }
    }
  }

  /// - Parameter column: what it is of, where it does not say so itself.
  static func head(_ column: String? = nil, @HTMLBuilder _ content: () -> HTML) -> HTML {
    Tag.th(.scope("row")) {
      if let column { Tag.span(.class("column"), .aria(.hidden, "true")) { "\(column) " } }
      content()
    }
  }

  /// - Parameter isLong: whether it needs the whole width of a phone.
  static func cell(_ column: String, isLong: Bool = false, @HTMLBuilder _ content: () -> HTML) -> HTML {
    Tag.td(isLong ? .class("long") : nil) {
      Tag.span(.class("column"), .aria(.hidden, "true")) { column }
      Tag.span(content: content)
    }
  }
}

/// Names with what they stand for.
enum Facts {
  static func fact(_ name: String, @HTMLBuilder _ content: () -> HTML) -> HTML {
    Tag.div {
      Tag.dt { name }
      Tag.dd(content: content)
    }
  }
}

/// The way to the rest of a list.
enum Paging {
  static func link(_ path: Link, _ number: Int64, _ text: String) -> HTML {
    Tag.p { Tag.a(.href(path.appending(number))) { text } }
  }
}

/// Lists in the order of creation. What they are paged by counts over all companies, so that an address has it sealed, as
/// the API's cursors do.
extension Console {
  /// Behind which number the page of a list begins; 0 where the address says nothing that this server wrote.
  func after(_ visit: Visit) throws -> Int64 {
    guard let text = visit.values.text("after"), text.utf8.count <= 128, let sealed = Base64URL.decode(text),
      let bytes = try? server.sealing.open(
        sealed, tenant: try visit.person().administrator.tenant, use: .cursor, id: visit.path)
    else { return 0 }
    return Int64(String(decoding: bytes, as: UTF8.self)) ?? 0
  }

  /// Nothing when `found` has no more than a page.
  func next<Value>(_ found: [Numbered<Value>], _ path: Link, _ visit: Visit) throws -> HTML? {
    guard found.count > PageRequest.standard else { return nil }
    let number = Array("\(found[PageRequest.standard - 1].number)".utf8)
    let sealed = try server.sealing.seal(
      number, tenant: visit.person().administrator.tenant, use: .cursor, id: path.text)
    return Tag.p { Tag.a(.href(path.asking(["after": Base64URL.encode(sealed)]))) { "Show the next ones" } }
  }
}

extension Link {
  func appending(_ number: Int64) -> Link { Link(stringLiteral: "\(text)\(number)") }
}

/// Who did something, by address where that is known.
struct ActorNames: Sendable {
  private var names: [String: String] = [:]

  init(_ actors: [String], tenant: String, in transaction: any StoreTransaction) throws {
    for actor in Set(actors) {
      let parts = actor.split(separator: ":", maxSplits: 1).map(String.init)
      guard parts.count == 2 else { continue }
      switch parts[0] {
      case "administrator":
        names[actor] = try transaction.administrator(tenant: tenant, id: parts[1])?.email ?? "a former administrator"
      case "device":
        names[actor] = try transaction.device(tenant: tenant, id: parts[1]).map(DeviceLine.name) ?? "a former device"
      case "token": names[actor] = "token \(parts[1].prefix(8))"
      default: break
      }
    }
  }

  func name(_ actor: String) -> String {
    switch actor {
    case "operator": "whoever runs the server"
    case "server": "the server itself"
    default: names[actor] ?? actor
    }
  }
}
