import CofferPolicy
import Testing

struct ContentTypeTests {
  @Test(arguments: [
    ("report.pdf", "application/pdf"), ("REPORT.PDF", "application/pdf"), ("a.b.csv", "text/plain"),
    ("table.csv", "text/csv"), ("README.md", "text/html"), ("README.md", "text/plain"), ("README.md", "text/x-ruby"),
    ("notes.txt", "application/json"),
    ("main.py", "text/x-script.python"),
    ("main.swift", "text/plain"), ("data.json", "application/json"), ("data.json", "text/plain"),
    ("photo.jpg", "image/jpeg"), ("photo.jpeg", "image/jpeg"), ("empty.txt", "inode/x-empty"),
    ("letter.docx", "application/vnd.openxmlformats-officedocument.wordprocessingml.document"),
    ("letter.odt", "application/vnd.oasis.opendocument.text"), ("film.mp4", "video/mp4"), ("song.mp3", "audio/mpeg"),
    ("all.zip", "application/zip"),
  ])
  func `real documents agree`(name: String, sniffed: String) {
    #expect(ContentType(fileName: name, sniffed: sniffed).agreement() == .agrees)
  }

  @Test(arguments: [
    ("report.docx", "application/pdf"), ("report.pdf", "application/zip"), ("page.txt", "text/html"),
    ("main.c", "text/html"), ("README.md", "text/rtf"),
    ("letter.docx", "application/zip"), ("all.zip", "application/vnd.oasis.opendocument.text"),
    ("letter.docx", "application/vnd.ms-word.document.macroEnabled.12"), ("empty.pdf", "inode/x-empty"),
    ("photo.png", "image/jpeg"), ("table.csv", "application/pdf"), ("tool.sh", "application/x-executable"),
  ])
  func `a wrong extension disagrees`(name: String, sniffed: String) {
    #expect(ContentType(fileName: name, sniffed: sniffed).agreement() == .disagrees)
  }

  @Test(arguments: ["report", ".pdf", "report.", "report.pdf ", "report.exe", "", ".", "..", "report.pdf\u{200B}"])
  func `a name without a known extension is of unknown type`(name: String) {
    #expect(ContentType(fileName: name, sniffed: "application/pdf").agreement() == .unknown)
  }

  @Test func `content that was not recognised is unknown`() {
    #expect(ContentType(fileName: "report.pdf", sniffed: nil).agreement() == .unknown)
  }

  @Test func `a company's own types are added and change no other`() {
    let types = [FileType(extension: "dwg", mediaTypes: ["image/vnd.dwg"])]
    #expect(ContentType(fileName: "plan.dwg", sniffed: "image/vnd.dwg").agreement(adding: types) == .agrees)
    #expect(ContentType(fileName: "plan.dwg", sniffed: "image/png").agreement(adding: types) == .disagrees)
    let override = [FileType(extension: "pdf", mediaTypes: ["text/plain"])]
    #expect(ContentType(fileName: "a.pdf", sniffed: "text/plain").agreement(adding: override) == .disagrees)
    #expect(throws: PolicyRefusal.malformed("fileTypes")) {
      try Company().policy(1) { $0.fileTypes = override }.validate()
    }
  }
}
