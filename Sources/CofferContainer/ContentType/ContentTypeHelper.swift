#if os(Linux)
  public import CofferSystem
  internal import Foundation

  /// The sniffer on Linux: asks `coffer-content-type`, a program without keys that confines itself before it reads.
  ///
  /// One process is started for each file, so what a file does to it is gone with it. A helper that is missing, dies,
  /// answers anything but one line, or takes too long, has not told the type.
  public struct ContentTypeHelper: ContentSniffer {
    private let path: String
    private let time: Duration
    private let log: MaskedLog?

    /// - Parameters:
    ///   - path: where the helper is; beside the running executable unless given.
    ///   - time: how long one answer may take; then the helper is killed.
    ///   - log: where failures of the helper are written.
    public init(path: String? = nil, time: Duration = .seconds(10), log: MaskedLog? = nil) {
      self.path = path ?? Self.pathBesideExecutable
      self.time = time
      self.log = log
    }

    public func mediaType(of head: [UInt8]) -> String? {
      do {
        var helper = try Subprocess(path)
        let answer = try helper.converse(sending: head, receivingAtMost: 256, within: time)
        guard answer.end == .exited(0), answer.output.last == UInt8(ascii: "\n") else {
          log?.warning("the content type helper gave no answer")
          return nil
        }
        return String(decoding: answer.output.dropLast(), as: UTF8.self)
      } catch {
        log?.warning("the content type helper failed: \(error: error)")
        return nil
      }
    }

    private static var pathBesideExecutable: String {
      let executable = Bundle.main.executableURL ?? URL(filePath: "/proc/self/exe").resolvingSymlinksInPath()
      return executable.deletingLastPathComponent().appending(path: "coffer-content-type").path
    }
  }
#endif
