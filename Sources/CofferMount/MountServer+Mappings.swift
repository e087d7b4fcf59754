internal import CofferContainer
internal import CofferFiles
internal import CofferSystem

/// What programs store to mappings: the kernel has it until it gives it back, when it likes or is told to.
extension MountServer {
  /// The kernel has given back what a program had stored to a mapping, which could not be taken, and forgets it. It tells a program
  /// that syncs the file, or closes it afterwards; who stores to a mapping and does neither hears nothing.
  func didLosePages(_ error: any Error) {
    switch error as? ViewError {
    // Stored after the mount was taken away, or the vault locked: of what was there before, all has come.
    case .ended, .locked: break
    default: loss.note()
    }
  }

  /// How much programs may have stored to mappings that the kernel has not given back: no more than the files have that are open for
  /// it, in bytes.
  public var mappedByteCount: UInt64 {
    writers.numbers.reduce(0) { sum, number in
      min(sum + min((try? view.attributes(of: number).byteCount) ?? 0, Self.byteLimit), Self.byteLimit)
    }
  }

  /// More than any disk has.
  private static let byteLimit: UInt64 = 1 << 60

  /// Has the kernel give back what programs have stored to mappings, so that it is stored with what comes next, and forget what it has
  /// of content.
  public func bringPagesBack() {
    for number in nodes.opened { session.tell(.content(kernelNumber(number))) }
  }

  /// Why a request has written back what programs stored to mappings.
  enum WriteBack {
    /// It cannot be answered otherwise: it fails where there is no thread for it.
    case needed
    /// It is answered as well as can be.
    case wanted
    /// As `wanted`; but it fails where something of that is lost.
    case whole
  }

  /// Runs `body`, which goes on with a request, when the kernel has given back what it has of some files: what programs stored to
  /// mappings. On a thread of its own where there may be any, for one that answers a request would wait for itself.
  func whenWrittenBack(
    _ numbers: [InodeNumber], _ request: Request, _ why: WriteBack,
    _ body: @escaping @Sendable (Request, MountServer) throws -> Void
  ) throws {
    let mapped = numbers.filter(writers.contains)
    if mapped.isEmpty { return try body(request, self) }
    do throws(SystemError) {
      try session.whileKept { [self] in
        let losses = loss.count
        for number in mapped { session.tell(.content(kernelNumber(number))) }
        // As every thread that answers: who changes something waits until the other mounts know of it.
        Self.$answering.withValue(self) {
          Request.answer(request.handle) { request, server in
            if why == .whole, loss.count != losses { throw ViewError.full }
            try body(request, server)
          }
        }
      }
    } catch {
      if why == .needed { throw error }
      try body(request, self)
    }
  }
}
