internal import CCoffer

#if canImport(Glibc)
  internal import Glibc
#elseif canImport(Darwin)
  internal import Darwin
  internal import Foundation
#endif

/// Threads that work for longer than a queue's may, or for which others wait.
///
/// The system may have none to give: there is a limit for each user and each group of processes, which any program of the user's can
/// use up. Foundation's threads then silently never run, and who waits for what they were to do waits for ever.
public enum NewThread {
  /// The body of a thread on its way there.
  private final class Body: Sendable {
    let run: @Sendable () -> Void
    init(_ run: @escaping @Sendable () -> Void) { self.run = run }
  }

  /// As the first thread of a process has it: commands walk down folders.
  public static let usualStackByteCount = 8 << 20

  /// Runs `body` on a thread of its own, for which nobody waits. Throws where the system gives none: then `body` has not run,
  /// and does not. The thread may run wherever the process's first one may, even if the calling one keeps to some processor.
  public static func start(
    stackByteCount: Int = usualStackByteCount, _ body: @escaping @Sendable () -> Void
  ) throws(SystemError) {
    var attributes = pthread_attr_t()
    guard pthread_attr_init(&attributes) == 0 else { throw SystemError(code: ENOMEM, call: "pthread_create") }
    defer { pthread_attr_destroy(&attributes) }
    pthread_attr_setdetachstate(&attributes, CInt(PTHREAD_CREATE_DETACHED))
    pthread_attr_setstacksize(&attributes, stackByteCount)
    let isElsewhere = coffer_has_other_processors() != 0
    let retained = Unmanaged.passRetained(
      Body {
        if isElsewhere { coffer_take_usual_processors() }
        body()
      })
    #if canImport(Darwin)
      var thread: pthread_t?
      let code = pthread_create(
        &thread, &attributes,
        { body in
          autoreleasepool { Unmanaged<Body>.fromOpaque(body).takeRetainedValue().run() }
          return nil
        }, retained.toOpaque())
    #else
      var thread = pthread_t()
      let code = pthread_create(
        &thread, &attributes,
        { body in
          if let body { Unmanaged<Body>.fromOpaque(body).takeRetainedValue().run() }
          return nil
        }, retained.toOpaque())
    #endif
    guard code == 0 else {
      retained.release()
      throw SystemError(code: code, call: "pthread_create")
    }
  }
}
