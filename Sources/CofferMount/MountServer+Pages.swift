internal import CofferContainer
internal import CofferFiles
internal import Glibc

/// Who writes through the kernel's pages, and who past them.
extension MountServer {
  /// Somebody has opened a file, and uses the kernel's pages. Comes before the answer, so that who writes past these knows of them.
  func didOpen(_ number: InodeNumber, isWriting: Bool) {
    nodes.didOpen(number)
    if isWriting { writers.didOpen(number) }
  }

  /// Whether the kernel shall use no pages of its own for what is written to a file that is opened so. Who only writes needs none:
  /// each write comes here at once anyway, a page would have to be found, filled and thrown away for it, and the kernel would ask
  /// for a new file's capabilities first. They can make no mapping, which the kernel would refuse then.
  func writesPastPages(_ number: InodeNumber, _ flags: CInt) -> Bool {
    guard flags & O_ACCMODE == O_WRONLY else { return false }
    // Where others append as well, the kernel does not know the end, and would put what is appended into its pages elsewhere.
    return !nodes.wasOpened(number) || (flags & O_APPEND != 0 && view.hasOthers)
  }

  /// Runs `body`, which writes to a file past the kernel's pages. It may have some for others all the same, and what was read before
  /// is void then, also where `body` fails. (Newer kernels drop it by themselves, before such a write and after one that did not fail.)
  ///
  /// - Parameters:
  ///   - range: where it may write. What others have stored to mappings comes back whole pages at a time, and leaves out what is written.
  ///   - body: returns where it has written, and how much.
  /// - Returns: how much was written.
  func writingPastPages(
    _ number: InodeNumber, _ range: Range<UInt64>, _ body: () throws -> (offset: UInt64, count: Int)
  ) throws -> Int {
    try pastPages.writing(number, range) { narrow in
      defer { if nodes.wasOpened(number) { dropPages(of: number, range) } }
      let written = try body()
      // What is appended lies behind what others appended and stored to since.
      narrow(written.offset..<(written.offset + UInt64(written.count)))
      return written.count
    }
  }

  /// Has the kernel write back and forget what it has of a range of a file, on a thread that answers a request for that file.
  private func dropPages(of number: InodeNumber, _ range: Range<UInt64>) {
    writers.disturb(number)
    let ticket = changes.add([.content(kernelNumber(number), range)])
    // Nothing is locked meanwhile that this kernel may want, but for pages: whoever has them asks for them, or brings them back.
    session.callAnother()
    waiting { changes.wait(for: ticket) }
  }

  /// A program has written to a file. The kernel has put the bytes into its pages before it asked; it may have dropped these
  /// since, for somebody else's change, and read them anew before they were written. Whether that can be, and the kernel is to be
  /// told of the content once the write is answered: until then a page may be locked.
  func wasDisturbed(_ number: InodeNumber) -> Bool { writers.takeDisturbance(of: number) }
}
