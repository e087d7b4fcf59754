internal import CFuse3

/// A file that is made without a name (O_TMPFILE of open(2)). The library does not know the kernel's request for one, which
/// has the arguments and the answer of a creation. So the library is given a creation, and who answers it asks here what was
/// meant.
enum UnnamedFile {
  @TaskLocal private static var isAsked = false

  /// Whether the request that this thread answers is for a file without a name.
  static var isWanted: Bool { isAsked }

  /// Runs `answer`, which hands the request to the library.
  static func answering(_ request: fuse_buf, _ answer: () -> Void) {
    guard KernelRequest(request)?.operation == .makeUnnamedFile else { return answer() }
    KernelRequest.set(.create, in: request)
    $isAsked.withValue(true, operation: answer)
  }
}
