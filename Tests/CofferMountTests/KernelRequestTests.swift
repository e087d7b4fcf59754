#if os(Linux)
  @testable import CofferMount
  import Testing

  /// Requests as the kernel writes them, and what is too short to be one.
  @Suite struct KernelRequestTests {
    /// A read of 128 KiB by thread 77, as in `linux/fuse.h`.
    private static let read: [UInt8] = {
      var bytes = [UInt8](repeating: 0, count: 80)
      bytes.withUnsafeMutableBytes { bytes in
        bytes.storeBytes(of: 80, toByteOffset: 0, as: UInt32.self)
        bytes.storeBytes(of: 15, toByteOffset: 4, as: UInt32.self)
        bytes.storeBytes(of: 77, toByteOffset: 32, as: UInt32.self)
        bytes.storeBytes(of: 128 << 10, toByteOffset: 56, as: UInt32.self)
      }
      return bytes
    }()

    @Test func `a reading says who asks for how much`() throws {
      try Self.read.withUnsafeBytes { bytes in
        let request = try #require(KernelRequest(bytes))
        #expect(request.operation == .read)
        #expect(request.requester == 77)
        #expect(request.readByteCount == 128 << 10)
      }
    }

    @Test func `a request of another operation is none of those that are known`() throws {
      var bytes = Self.read
      bytes[4] = 99
      try bytes.withUnsafeBytes { bytes in
        let request = try #require(KernelRequest(bytes))
        #expect(request.operation == nil)
      }
    }

    @Test(arguments: 0...80) func `nothing is read beyond what is there`(count: Int) {
      // On the heap and no longer than that, so that the sanitizers would see it.
      let bytes = UnsafeMutableRawBufferPointer.allocate(byteCount: count, alignment: 8)
      defer { bytes.deallocate() }
      bytes.copyBytes(from: Self.read[..<count])
      let request = KernelRequest(UnsafeRawBufferPointer(bytes))
      #expect((request != nil) == (count >= 40))
      #expect((request?.readByteCount ?? 0) == (count >= 60 ? 128 << 10 : 0))
      #expect((request?.offers ?? 0) == 0)
    }
  }
#endif
