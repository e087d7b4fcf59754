import Foundation
import Testing

@testable import CofferMount

@Suite(.timeLimit(.minutes(5))) struct MountPhaseTests {
  @Test func `who waits goes on when the mount has come so far`() {
    let phase = MountPhase()
    let ended = DispatchGroup()
    for last in [MountPhase.Phase.live, .cutOff, .ended] {
      DispatchQueue.global().async(group: ended) {
        #expect(phase.wait { $0 == last } == last)
        // The next one.
        switch last {
        case .live: phase.set(.cutOff)
        case .cutOff: phase.set(.ended)
        default: break
        }
      }
    }
    DispatchQueue.global().async(group: ended) { #expect(phase.waitUntilOver { false }) }
    for next in [MountPhase.Phase.mounted, .live] { phase.set(next) }
    ended.wait()
    #expect(phase.present.isOver)
  }

  @Test func `a mount that has ended stays so, and is over as soon as nothing passes`() {
    let phase = MountPhase()
    for early in [MountPhase.Phase.mounted, .live] {
      phase.set(early)
      #expect(!phase.present.isOver)
    }
    #expect(!phase.waitUntilOver { true })
    phase.set(.cutOff)
    #expect(phase.waitUntilOver { true })
    phase.set(.ended)
    phase.set(.cutOff)
    #expect(phase.present == .ended)
  }
}
