import AsyncHTTPClient
import Foundation
import NIOSSL
import ZDCServer

/// A self-signed certificate for localhost, for nothing but tests.
enum TestCertificate {
  /// Runs `body` with the certificate and its key in files.
  static func withFiles<T>(_ body: (Configuration.TLSFiles) async throws -> T) async throws -> T {
    let folder = TestServer.newFolder()
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
    defer { TestServer.remove(folder) }
    let files = Configuration.TLSFiles(certificate: folder + "/tls.pem", key: folder + "/tls.key")
    try Data(certificate.utf8).write(to: URL(fileURLWithPath: files.certificate))
    try Data(key.utf8).write(to: URL(fileURLWithPath: files.key))
    return try await body(files)
  }

  /// A client that asks for no more than this version, and takes any certificate.
  static func client(newest: TLSVersion? = nil) -> HTTPClient {
    var tls = TLSConfiguration.makeClientConfiguration()
    tls.certificateVerification = .none
    tls.minimumTLSVersion = .tlsv1
    tls.maximumTLSVersion = newest
    return HTTPClient(configuration: HTTPClient.Configuration(tlsConfiguration: tls))
  }

  private static let certificate = """
    -----BEGIN CERTIFICATE-----
    MIIBfjCCASWgAwIBAgIUYUQOUF38l4IHmHkl7hUB0RDwE28wCgYIKoZIzj0EAwIw
    FDESMBAGA1UEAwwJbG9jYWxob3N0MCAXDTI2MTEyMjExNTEyNloYDzIxMjYxMDI5
    MTE1MTI2WjAUMRIwEAYDVQQDDAlsb2NhbGhvc3QwWTATBgcqhkjOPQIBBggqhkjO
    PQMBBwNCAARBc73kl2BYZuqM80fSQAcrXaPd4BY56wf7fjo+ivpU2GBtpaWzEIvD
    TrHpF1x8u6cQU2bpddgF2PCNJWGjS8xKo1MwUTAdBgNVHQ4EFgQUkxhfT7oOQP3S
    O7bDetuulNe4z2kwHwYDVR0jBBgwFoAUkxhfT7oOQP3SO7bDetuulNe4z2kwDwYD
    VR0TAQH/BAUwAwEB/zAKBggqhkjOPQQDAgNHADBEAiBEnh7GF3laJnPiv+quw2SM
    JYC56CN+S60Xvi55dCOKhgIgbn8vVXK4gbPvAyErApndxhF407QoQARLEw0iAbIH
    Mn8=
    -----END CERTIFICATE-----

    """

  private static let key = """
    -----BEGIN PRIVATE KEY-----
    MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgEzFmK5C3oVrw+85t
    G6MqZb7W9VTKtWkUr13q+JeZ/OehRANCAARBc73kl2BYZuqM80fSQAcrXaPd4BY5
    6wf7fjo+ivpU2GBtpaWzEIvDTrHpF1x8u6cQU2bpddgF2PCNJWGjS8xK
    -----END PRIVATE KEY-----

    """
}
