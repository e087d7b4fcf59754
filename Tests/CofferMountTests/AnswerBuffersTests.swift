import Testing

@testable import CofferMount

@Suite struct AnswerBuffersTests {
  private func fill(_ buffer: UnsafeMutableRawBufferPointer, _ value: UInt8) {
    _ = buffer.initializeMemory(as: UInt8.self, repeating: value)
  }

  private func isClear(_ buffers: AnswerBuffers) -> Bool {
    buffers.with(AnswerBuffers.size) { $0.allSatisfy { $0 == 0 } }
  }

  @Test func `nothing of what was in a buffer stays, wherever it is when they are overwritten`() {
    let buffers = AnswerBuffers()
    buffers.with(AnswerBuffers.size) { fill($0, 7) }
    #expect(!isClear(buffers))
    buffers.overwriteAll()
    #expect(isClear(buffers))
    // In use, also where that comes more than once.
    buffers.with(AnswerBuffers.size) { buffer in
      for _ in 0..<2 {
        fill(buffer, 7)
        buffers.overwriteAll()
        fill(buffer, 7)
      }
    }
    #expect(isClear(buffers))
  }

  @Test func `two that are used at a time are two`() {
    let buffers = AnswerBuffers()
    buffers.with(10) { first in
      #expect(first.count == 10)
      fill(first, 1)
      buffers.with(.max) { second in
        #expect(second.count == AnswerBuffers.size)
        fill(second, 2)
      }
      #expect(first.allSatisfy { $0 == 1 })
    }
  }
}
