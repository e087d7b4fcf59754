/// What is asked of a file or of the container that holds it.
public enum Action: String, Codable, CaseIterable, Hashable, Sendable {
  /// Read it in an app.
  case view
  /// Change it in place; the container keeps the file.
  case edit
  /// Give an app a copy of its own.
  case openIn
  /// Hand it to a share or action extension.
  case share
  /// Write a copy outside the container.
  case saveCopy
  /// Show the container as a folder of the system.
  case mount
  /// Copy it between folders of the container.
  case copyInternal
  /// Bring a file into the container.
  case `import`
  case print
  case pasteOut
  case pasteIn
  case screenshot

  /// Whether content leaves the container by it.
  public var letsContentOut: Bool {
    switch self {
    case .openIn, .share, .saveCopy, .mount, .print, .pasteOut, .screenshot: true
    case .view, .edit, .copyInternal, .import, .pasteIn: false
    }
  }
}
