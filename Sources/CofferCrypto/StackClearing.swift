internal import CofferSystem

/// How much of the stack a library's function may use, in bytes: half as much again as the deepest was seen to use, with room for
/// what a build without optimisation adds.
enum StackUse: Int {
  /// Ciphers, digests and codes: 8 KiB.
  case small = 0x3000
  /// Curves and what is built on them, and what derives a key from a passcode: 21 KiB.
  case large = 0xA000
}

/// Runs `body`, and then overwrites the part of the stack that it used.
///
/// A library's function may leave in its frame the key that it was given, or the schedule that it made of it, and a thread that
/// goes to sleep keeps that for hours, behind a lock. So whatever gives a library a key does it in here.
func clearingStack<Result, Failure>(
  _ use: StackUse = .small, after body: () throws(Failure) -> Result
) throws(Failure) -> Result {
  defer { overwriteStack(byteCount: use.rawValue) }
  return try apart(body)
}

/// In a frame of its own, even when the compiler would rather write a library's function into the caller's.
@inline(never)
private func apart<Result, Failure>(_ body: () throws(Failure) -> Result) throws(Failure) -> Result { try body() }
