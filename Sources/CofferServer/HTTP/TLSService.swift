internal import CofferSystem
internal import ServiceLifecycle
internal import UnixSignals

/// Reads the TLS files anew when they change, and on SIGHUP, which also ends no server that has none.
struct TLSService: Service {
  /// Between two looks at the files.
  private static let interval = Duration.seconds(5)

  let credentials: TLSCredentials?
  let log: MaskedLog

  func run() async throws {
    let signals = await UnixSignalsSequence(trapping: .sighup)
    await cancelWhenGracefulShutdown {
      await withTaskGroup(of: Void.self) { group in
        group.addTask {
          for await _ in signals { refresh(isAsked: true) }
        }
        group.addTask {
          while !Task.isCancelled {
            do { try await Task.sleep(for: Self.interval) } catch { break }
            refresh(isAsked: false)
          }
        }
      }
    }
  }

  private func refresh(isAsked: Bool) {
    guard let credentials else {
      if isAsked { log.notice("SIGHUP: there are no TLS files to read") }
      return
    }
    switch credentials.refresh(isAsked: isAsked) {
    case .unchanged: break
    case .replaced: log.notice("the TLS certificate was read anew")
    case .refused: log.error("the new TLS certificate or key cannot be used; the earlier ones stay")
    }
  }
}
