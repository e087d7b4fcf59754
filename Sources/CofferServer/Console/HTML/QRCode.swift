internal import CQREncode

/// A picture that a phone's camera reads (ISO/IEC 18004), drawn by libqrencode and shown as SVG.
enum QRCode {
  /// The free border that readers ask for, in modules.
  private static let border = 4

  /// Nil when the text is too long for a picture. The text is not in what is returned but as the picture.
  static func picture(of text: String, label: String) -> HTML? {
    guard let code = QRcode_encodeString(text, 0, QR_ECLEVEL_M, QR_MODE_8, 1) else { return nil }
    defer { QRcode_free(code) }
    let width = Int(code.pointee.width)
    var path = ""
    for row in 0..<width {
      for column in 0..<width where code.pointee.data[row * width + column] & 1 == 1 {
        path += "M\(column + border) \(row + border)h1v1h-1z"
      }
    }
    let side = width + 2 * border
    return Tag.svg(
      .class("qr"), .viewBox("0 0 \(side) \(side)"), .role("img"), .aria(.label, label), .crisp
    ) {
      Tag.rect(.width("\(side)"), .height("\(side)"), .fill("#fff"))
      Tag.path(.d(path), .fill("#000"))
    }
  }
}
