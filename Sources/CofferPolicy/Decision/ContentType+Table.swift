/// Which media types a recogniser reports for real documents of each extension.
extension ContentType {
  /// Text that is no `text/` by name. An empty file is empty text.
  static let otherTextTypes: Set = [
    "inode/x-empty", "application/x-empty", "application/javascript", "application/x-shellscript", "application/csv",
    "application/json", "application/x-ndjson",
  ]

  /// What an app might act on when it was promised plain text.
  static let markupTypes: Set = ["text/html", "text/rtf", "text/xml", "text/calendar"]

  /// Extensions of files that are plain text whatever they are for.
  static let textExtensions: Set = [
    "txt", "text", "log", "csv", "tsv", "conf", "ini", "toml", "yaml", "yml", "c", "cc", "cpp", "h", "hpp", "m", "mm",
    "swift", "rs", "go", "java", "kt", "py", "rb", "pl", "sh", "js", "ts", "css", "sql", "tex", "patch", "diff", "md",
    "markdown",
  ]

  static let markdownExtensions: Set = ["md", "markdown"]

  static let accepted: [String: Set<String>] = [
    // Text with a syntax that recognisers know.
    "json": ["application/json", "text/plain", "application/x-ndjson"],
    "xml": ["text/xml", "application/xml", "text/plain"],
    "html": html, "htm": html,
    "svg": ["image/svg+xml"],
    "rtf": ["text/rtf", "application/rtf"],
    "ics": ["text/calendar", "text/plain"],
    "vcf": ["text/vcard", "text/x-vcard", "text/plain"],
    "eml": ["message/rfc822", "text/plain"],
    // Documents.
    "pdf": ["application/pdf"],
    "docx": ["application/vnd.openxmlformats-officedocument.wordprocessingml.document"],
    "xlsx": ["application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"],
    "pptx": ["application/vnd.openxmlformats-officedocument.presentationml.presentation"],
    "doc": ["application/msword"],
    "xls": ["application/vnd.ms-excel"],
    "ppt": ["application/vnd.ms-powerpoint"],
    "odt": ["application/vnd.oasis.opendocument.text"],
    "ods": ["application/vnd.oasis.opendocument.spreadsheet"],
    "odp": ["application/vnd.oasis.opendocument.presentation"],
    "epub": ["application/epub+zip"],
    // Pictures.
    "png": ["image/png"],
    "jpg": ["image/jpeg"], "jpeg": ["image/jpeg"],
    "gif": ["image/gif"],
    "webp": ["image/webp"],
    "heic": ["image/heic", "image/heif"],
    "tif": ["image/tiff"], "tiff": ["image/tiff"],
    "bmp": ["image/bmp", "image/x-ms-bmp"],
    // Sound and film.
    "mp3": ["audio/mpeg"],
    "m4a": ["audio/mp4", "audio/x-m4a", "video/mp4"],
    "wav": ["audio/wav", "audio/x-wav", "audio/vnd.wave"],
    "flac": ["audio/flac", "audio/x-flac"],
    "ogg": ["audio/ogg", "video/ogg", "application/ogg"],
    "mp4": ["video/mp4", "video/x-m4v"],
    "m4v": ["video/mp4", "video/x-m4v"],
    "mov": ["video/quicktime"],
    "webm": ["video/webm"],
    "mkv": ["video/x-matroska"],
    "avi": ["video/x-msvideo"],
    // Archives. A document that is a ZIP inside is recognised as the document, and does not pass for an archive.
    "zip": ["application/zip"],
    "gz": ["application/gzip", "application/x-gzip"],
    "tar": ["application/x-tar"],
    "7z": ["application/x-7z-compressed"],
  ]

  private static let html: Set = ["text/html", "application/xhtml+xml", "text/plain"]
}
