internal import CofferFiles
internal import CofferSystem

/// Names, and what they stand for, for who lists folders: from what was listed before where that still stands.
extension IndexSession {
  /// At most about `limit` rows of names whose keys begin with `prefix`, ascending from after `last` on; none where there
  /// are no more.
  func entryRows(
    of parent: InodeNumber, prefix: RowPrefix, after last: RowKey?, limit: Int
  ) throws -> [(key: RowKey, entries: [Entry])] {
    let keys = try stored.keys(.entry, prefix: prefix, after: last, limit: limit)
    // Changed names lie between the stored ones, and are few or not worth remembering.
    if keys.isEmpty || !changedKeys(.entry, prefix).isEmpty {
      return try rows(.entry, prefix: prefix, after: last, limit: limit).map {
        ($0.0, try Entry.decode($0.1, parent: parent))
      }
    }
    let known = keys.map { listed.entries($0) }
    let missing = zip(keys, known).filter { $1 == nil }.map(\.0)
    if missing.isEmpty { return zip(keys, known).map { ($0, $1 ?? []) } }
    let values =
      missing.count > keys.count / 2
      ? try stored.values(.entry, after: last, through: keys[keys.count - 1], count: keys.count)
      : try stored.values(.entry, of: missing)
    return try zip(keys, known).map { key, known in
      if let known { return (key, known) }
      guard let bytes = values[key] else { throw MalformedBytes() }
      let entries = try Entry.decode(bytes, parent: parent)
      listed.insert(entries, key)
      return (key, entries)
    }
  }

  /// What a listing showed of a row of names, where it still stands.
  func listedEntries(at key: RowKey) -> [Entry]? {
    changed(RowID(kind: .entry, key: key)) == nil ? listed.entries(key) : nil
  }

  /// An inode, often without a look at its record.
  func nodeIfPresent(_ number: InodeNumber) throws -> ListedNode? {
    let id = RowID(kind: .inode, key: rowKeys.inode(number))
    let isChanged = changed(id) != nil
    if !isChanged, let known = listed.node(id.key) { return orphans.present(known) }
    guard let node = try inodeIfPresent(number).map({ ListedNode($0) }) else { return nil }
    if !isChanged, !orphans.contains(number) { listed.insert(node, id.key) }
    return node
  }
}
