/// A self-signed certificate for `localhost`, made for these tests and good for nothing else.
enum TLSFixture {
  static let certificate = """
    -----BEGIN CERTIFICATE-----
    MIIBlTCCATugAwIBAgIUCFITs1XpgebHStRgtoehww+LsKQwCgYIKoZIzj0EAwIw
    FDESMBAGA1UEAwwJbG9jYWxob3N0MCAXDTI2MTEyMTA1NDMwMVoYDzIxMjYxMDI4
    MDU0MzAxWjAUMRIwEAYDVQQDDAlsb2NhbGhvc3QwWTATBgcqhkjOPQIBBggqhkjO
    PQMBBwNCAAQkpg3IebaB2I0UwtB5BwbuketAx/pqVSLt6c6f9niFav5PuA9aHFbs
    esSimJ2MA3+siTUSJgj1Gg5OW3p99I4Oo2kwZzAdBgNVHQ4EFgQUWBolM5w9LXYW
    ytmZt94/DOQ2deAwHwYDVR0jBBgwFoAUWBolM5w9LXYWytmZt94/DOQ2deAwDwYD
    VR0TAQH/BAUwAwEB/zAUBgNVHREEDTALgglsb2NhbGhvc3QwCgYIKoZIzj0EAwID
    SAAwRQIge5ZeUiIFuMOdRdtb7WtvMsXzt57asnLwYV/5vqCKZEECIQDlmKk1r1d+
    zDnqlh3yhSR1N48+HJ0TcZs0srO5MPl5yw==
    -----END CERTIFICATE-----
    """

  static let key = """
    -----BEGIN PRIVATE KEY-----
    MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgaKFp9M4itfLSqDJ3
    6p+d3hfIAtpPbq2Do8/FPW83m2ihRANCAAQkpg3IebaB2I0UwtB5BwbuketAx/pq
    VSLt6c6f9niFav5PuA9aHFbsesSimJ2MA3+siTUSJgj1Gg5OW3p99I4O
    -----END PRIVATE KEY-----
    """
}
