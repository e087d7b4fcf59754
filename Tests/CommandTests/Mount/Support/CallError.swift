import Glibc

/// What a system call was refused with.
struct CallError: Error, Hashable, CustomStringConvertible {
  let number: CInt

  init(_ number: CInt) { self.number = number }

  /// As the manual pages have it: `ENOENT`.
  var description: String { GNU.errorName(number).map { String(cString: $0) } ?? "error \(number)" }

  /// The result of a call, or why there is none. The call is the argument, so that nothing comes between it and its error.
  @discardableResult
  static func check<Value: SignedInteger>(_ result: Value) throws(CallError) -> Value {
    guard result >= 0 else { throw CallError(errno) }
    return result
  }
}
