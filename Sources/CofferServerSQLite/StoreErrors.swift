internal import CofferServer
internal import GRDB

/// Runs `body` and turns what the engine throws into ``StoreError``. The engine's own errors may hold values of rows.
func translatingStoreErrors<Value>(_ body: () throws -> Value) throws -> Value {
  do { return try body() } catch { throw translated(error) }
}

/// The ``StoreError`` for what the engine threw; any other error is the caller's own and stays.
func translated(_ error: any Error) -> any Error {
  switch error {
  case let error as DatabaseError where [.SQLITE_CORRUPT, .SQLITE_NOTADB].contains(error.resultCode):
    StoreError.damagedFile
  case let error as DatabaseError: StoreError.unavailable(code: Int(error.extendedResultCode.rawValue))
  case is RowDecodingError: StoreError.damaged("a row")
  case is CancellationError: StoreError.unavailable(code: Int(ResultCode.SQLITE_INTERRUPT.rawValue))
  default: error
  }
}
