internal import CofferSystem
internal import Foundation
internal import Synchronization

/// The agent's end of a connection.
final class AgentConnection: Sendable {
  let socket: LocalSocket
  let interrupts = Interrupts()
  private let presence = Presence()
  private let sending = Mutex(())

  init(_ socket: LocalSocket) { self.socket = socket }

  /// Answers are few and small: they fit into the socket, whether or not the client reads them. One that has gone is
  /// noticed by its hang-up.
  func send(_ answer: AgentAnswer) { sending.withLock { _ in try? socket.send(answer.bytes) } }

  /// Whether the client is there and was not interrupted, as it says itself.
  func confirmPresence() -> Bool {
    guard let question = presence.ask({ send(.ping) }) else { return false }
    return presence.waitForAnswer(to: question) && !interrupts.isRaised
  }

  /// What a client says while its command runs: zero for `ping`, else the number of a signal that it got.
  func hear(_ bytes: UnsafeRawBufferPointer) {
    for byte in bytes {
      if byte == 0 {
        presence.answer()
      } else {
        let isFirst = !interrupts.isRaised
        interrupts.raise(Int32(byte))
        if isFirst, !interrupts.isCaught { send(.end(signal: byte)) }
      }
    }
  }

  /// The client has gone.
  func hangUp() {
    interrupts.raise()
    presence.end()
  }
}

/// Questions to a client and its answers, which come in the order of the questions.
private final class Presence: @unchecked Sendable {
  private let condition = NSCondition()
  private var asked = 0
  private var answered = 0
  private var isGone = false

  /// The question's number; nil where nobody is there.
  func ask(_ send: () -> Void) -> Int? {
    condition.withLock {
      guard !isGone else { return nil }
      asked += 1
      send()
      return asked
    }
  }

  func waitForAnswer(to question: Int) -> Bool {
    condition.withLock {
      while answered < question, !isGone { condition.wait() }
      return !isGone
    }
  }

  func answer() { change { answered += 1 } }

  func end() { change { isGone = true } }

  private func change(_ body: () -> Void) {
    condition.withLock {
      body()
      condition.broadcast()
    }
  }
}
