internal import CofferFiles

/// What listings of folders showed, and the attributes of what was stored last, as long as they equal what is stored.
/// Programs list the same folders again and again, and the kernel forgets them when it needs memory.
///
/// Without content, so that it holds many times the files that ``IndexSession``'s records do: about 200 bytes for a name, and
/// as much for what it stands for.
struct ListedRows {
  private var names: GenerationCache<RowKey, [Entry]>
  private var nodes: GenerationCache<RowKey, ListedNode>

  /// Names, and nodes, that a generation holds.
  var limit: Int {
    get { names.limit }
    set { (names.limit, nodes.limit) = (newValue, newValue) }
  }

  init(limit: Int = 1024) {
    names = GenerationCache(limit: limit)
    nodes = GenerationCache(limit: limit)
  }

  mutating func entries(_ key: RowKey) -> [Entry]? { names.find(key) }
  mutating func node(_ key: RowKey) -> ListedNode? { nodes.find(key) }
  mutating func insert(_ entries: [Entry], _ key: RowKey) { names.insert(entries, key) }
  mutating func insert(_ node: ListedNode, _ key: RowKey) { nodes.insert(node, key) }

  /// A row was stored as `record`, or removed where it is nil.
  mutating func didCommit(_ id: RowID, _ record: Record?) {
    switch (id.kind, record) {
    case (.entry, _): names.remove(id.key)
    case (.inode, .inode(let inode)?): nodes.insert(ListedNode(inode), id.key)
    case (.inode, _): nodes.remove(id.key)
    default: break
    }
  }
}
