/// Why a store did not answer. Callers refuse: no store error ever lets a request through.
public enum StoreError: Error, Equatable, Sendable, CustomStringConvertible {
  /// The store cannot be reached, is full or is busy. `code` is the engine's own.
  case unavailable(code: Int)
  /// The store's file is damaged, or is no store at all.
  case damagedFile
  /// A stored value does not read as what its column holds. `what` names the column.
  case damaged(String)
  /// A newer version of the server wrote the store.
  case newerFormat
  /// The store belongs to another server key than the one given.
  case foreignServerKey

  /// The store will not be opened with this key and this version, however often that is tried.
  public var isForGood: Bool {
    // SQLITE_ERROR, SQLITE_CONSTRAINT and SQLITE_MISMATCH: no such schema as this, or no such values.
    if case .unavailable(let code) = self { [1, 19, 20].contains(code & 0xff) } else { true }
  }

  public var description: String {
    switch self {
    case .unavailable(let code): "the store is not available (code \(code)); try again later"
    case .damagedFile:
      """
      coffer.sqlite is damaged, or is no database; keep a copy of it, and make a new data directory of a backup: \
      coffer-server restore BACKUP --server-key KEY --data NEW
      """
    case .damaged(let what): "the store is damaged: \(what) cannot be read"
    case .newerFormat: "the store was written by a newer version of coffer-server; use that version"
    case .foreignServerKey: "the server key is not the one that this store was made with; restore the right server.key"
    }
  }
}
