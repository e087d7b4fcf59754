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

  static func head(@HTMLBuilder _ content: () -> HTML) -> HTML { Tag.th(.scope("row"), content: content) }

  static func cell(_ column: String, @HTMLBuilder _ content: () -> HTML) -> HTML {
    Tag.td {
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
  /// Nothing when `found` has no more than a page.
  static func next<Value>(_ found: [Numbered<Value>], _ path: Link) -> HTML? {
    guard found.count > PageRequest.standard else { return nil }
    return link(path, found[PageRequest.standard - 1].number, "Show the next ones")
  }

  static func link(_ path: Link, _ number: Int64, _ text: String) -> HTML {
    Tag.p { Tag.a(.href(path.appending(number))) { text } }
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
