import CofferSystem
import Testing

@Suite struct LogMessageTests {
  private struct Secret: Error, CustomStringConvertible {
    let description = "hunter2"
  }

  @Test func `values are masked unless they are marked public`() {
    let name = "report-hunter2.pdf"
    let message: LogMessage = "refused \(name), \(Array(name.utf8)) by rule \(public: "r-17")"
    #expect(message.text == "refused <masked>, <masked> by rule r-17")
  }

  @Test func `an error keeps its kind and code, and nothing that it says`() {
    let message: LogMessage = "\(error: Secret()) \(Secret()) \(error: SystemError(code: 28, call: "fsync"))"
    #expect(!message.text.contains("hunter2"))
    #expect(message.text.contains("Secret") && message.text.contains("fsync") && message.text.contains("28"))
  }
}
