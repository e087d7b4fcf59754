internal import NIOSSL

/// The certificate that a device was given for its company's server: the server's own when that is self-signed, or that
/// of the authority which issued it. It takes the place of all that the system trusts.
struct PinnedCertificate: Sendable {
  let certificate: NIOSSLCertificate
  let der: [UInt8]

  /// Reads one certificate in PEM or DER, of at most 64 KiB.
  init(_ bytes: [UInt8]) throws(ClientError) {
    do {
      guard bytes.count <= 64 << 10 else { throw ClientError.badCertificate }
      let certificates =
        bytes.starts(with: [0x30])
        ? [try NIOSSLCertificate(bytes: bytes, format: .der)] : try NIOSSLCertificate.fromPEMBytes(bytes)
      guard certificates.count == 1 else { throw ClientError.badCertificate }
      certificate = certificates[0]
      der = try certificate.toDERBytes()
    } catch {
      throw .badCertificate
    }
  }
}
