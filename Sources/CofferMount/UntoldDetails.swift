internal import CFuse3

/// What the kernel says in a request and the library does not tell. Who answers it asks here.
struct UntoldDetails {
  @TaskLocal private static var current = UntoldDetails()

  private var isUnnamed = false
  private var takesPrivileges = false

  /// A file is made without a name (O_TMPFILE of open(2)). The library does not know that request, which has the arguments and the
  /// answer of a creation, and is given a creation.
  static var isUnnamed: Bool { current.isUnnamed }

  /// Who changes content is root, and may all the same not leave a file its set-user-ID bits (CAP_FSETID of capabilities(7)). Of
  /// others nothing is asked here: nobody but root is taken to have that right.
  static var takesPrivileges: Bool { current.takesPrivileges }

  /// Runs `answer`, which hands the request that this thread answers to the library.
  static func keeping(_ request: fuse_buf, _ answer: () -> Void) {
    guard let told = KernelRequest(request) else { return answer() }
    if told.operation == .makeUnnamedFile {
      KernelRequest.set(.create, in: request)
      $current.withValue(UntoldDetails(isUnnamed: true), operation: answer)
    } else if told.user == 0, told.takesPrivileges {
      $current.withValue(UntoldDetails(takesPrivileges: true), operation: answer)
    } else {
      answer()
    }
  }
}
