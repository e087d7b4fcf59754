#if os(Linux)
  internal import Glibc

  /// A program that is started to outlive this one: in a session of its own, in the root folder, with nothing of this
  /// process but what it is given.
  public final class BackgroundProgram: Sendable {
    public let processID: Int32
    /// What is written here the program reads from its standard input.
    public let input: OwnedDescriptor
    public let output: OwnedDescriptor
    public let errors: OwnedDescriptor

    /// Starts the program at `path`, with exactly this environment.
    public init(_ path: String, _ arguments: [String], environment: [String: String]) throws(SystemError) {
      let (inputEnd, input) = try OwnedDescriptor.pipe()
      let (output, outputEnd) = try OwnedDescriptor.pipe()
      let (errors, errorsEnd) = try OwnedDescriptor.pipe()
      // The program's ends block, as programs expect. Each end has this flag for itself.
      for end in [outputEnd, errorsEnd] {
        guard fcntl(end.number, F_SETFL, 0) == 0 else { throw .last("fcntl") }
      }
      (self.input, self.output, self.errors) = (input, output, errors)
      processID = try ProgramStart.start(
        [path] + arguments, environment: environment, descriptors: [inputEnd, outputEnd, errorsEnd], isOwnSession: true)
    }

    /// Waits until the program has ended; its exit code, or 128 and the number of the signal that ended it.
    public func waitForEnd() -> Int32 {
      switch ProgramStart.reap(processID) {
      case .exited(let code): code
      case .killed(let signal): 128 + signal
      }
    }
  }
#endif
