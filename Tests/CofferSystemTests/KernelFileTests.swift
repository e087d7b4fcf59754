#if os(Linux)
  import CofferSystem
  import Glibc
  import Testing

  struct KernelFileTests {
    @Test func `a file of more than a page is read to its end`() throws {
      let text = try KernelFile.text(of: "/proc/self/maps")
      #expect(text.utf8.count > 3 * sysconf(CInt(_SC_PAGESIZE)) && text.contains("[stack]\n"))
    }

    @Test func `more than the limit is refused`() {
      #expect(throws: SystemError(code: EFBIG, call: "read")) {
        try KernelFile.bytes(of: "/proc/self/maps", limit: 100)
      }
    }
  }
#endif
