import Crypto
import NIOCore
import Testing
import ZDCProtocol

@testable import ZDCServerS3

/// Signature Version 4 against the examples that Amazon publishes, and the forms of credentials and addresses.
@Suite struct S3SignatureTests {
  private static let secret = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"
  private static let signer = SignatureV4(
    credentials: S3Credentials(keyID: "AKIAIOSFODNN7EXAMPLE", secret: secret), region: "us-east-1")
  private static let noBody = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

  struct Example: Sendable, CustomTestStringConvertible {
    let testDescription: String
    var method = "GET"
    var path = "/"
    var query: [(name: String, value: String)] = []
    var headers: [(name: String, value: String)] = []
    var body = ""
    let signature: String
  }

  static let examples = [
    Example(
      testDescription: "a range of an object", path: "/test.txt", headers: [("Range", "bytes=0-9")],
      signature: "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41"),
    Example(
      testDescription: "an upload", method: "PUT", path: "/test$file.text",
      headers: [("Date", "Fri, 24 May 2013 00:00:00 GMT"), ("x-amz-storage-class", "REDUCED_REDUNDANCY")],
      body: "Welcome to Amazon S3.", signature: "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd"),
    Example(
      testDescription: "a query without a value", query: [("lifecycle", "")],
      signature: "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543"),
    Example(
      testDescription: "a list", query: [("prefix", "J"), ("max-keys", "2")],
      signature: "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7"),
  ]

  @Test(arguments: examples) func publishedExample(_ example: Example) {
    let date = "20130524T000000Z"
    let hash = SignatureV4.hash(of: ByteBuffer(string: example.body))
    let headers =
      example.headers + [
        ("Host", "examplebucket.s3.amazonaws.com"), ("x-amz-content-sha256", hash), ("x-amz-date", date),
      ]
    let message = SignatureV4.Message(
      method: example.method, path: example.path, query: example.query, headers: headers, bodyHash: hash)
    let value = Self.signer.authorization(for: message, date: date)
    #expect(value.hasPrefix("AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request,"))
    #expect(value.hasSuffix(",Signature=\(example.signature)"))
  }

  @Test func publishedSigningKey() {
    let credentials = S3Credentials(keyID: "AKIDEXAMPLE", secret: "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY")
    let signer = SignatureV4(credentials: credentials, region: "us-east-1", service: "iam")
    let key = signer.signingKey(day: "20150830").withUnsafeBytes { hexadecimal($0) }
    #expect(key == "c4afb1cc5771d871763a393e44b703571b55cc28424d1a5e86da6ed3c154a4b9")
  }

  @Test func canonicalFormOfOddCharacters() {
    let message = SignatureV4.Message(
      method: "GET", path: "/a b/ü~+", query: [("b", "x/y"), ("a", "1 2"), ("B", "")],
      headers: [("X-Two", "  a   b "), ("host", "h")], bodyHash: Self.noBody)
    #expect(
      SignatureV4.canonicalRequest(message) == """
        GET
        /a%20b/%C3%BC~%2B
        B=&a=1%202&b=x%2Fy
        host:h
        x-two:a b

        host;x-two
        \(Self.noBody)
        """)
  }

  @Test func credentialsNeverShowTheirSecret() throws {
    let credentials = S3Credentials(keyID: "id", secret: Self.secret, sessionToken: "token")
    var dumped = ""
    dump(credentials, to: &dumped)
    for text in ["\(credentials)", String(reflecting: credentials), dumped] {
      #expect(!text.contains("wJalr") && !text.contains("token"))
    }
  }

  @Test func credentialsOfAFile() throws {
    let text = "# keys\nexport AWS_ACCESS_KEY_ID = id\nAWS_SECRET_ACCESS_KEY=\"a=b\"\n\nAWS_SESSION_TOKEN=t\n"
    let credentials = try S3Credentials(file: text)
    #expect((credentials.keyID, credentials.secret, credentials.sessionToken) == ("id", "a=b", "t"))
    let error = #expect(throws: S3OpenError.self) { try S3Credentials(file: "AWS_ACCESS_KEY_ID=id\n") }
    #expect(error?.description == "the credentials file lacks AWS_ACCESS_KEY_ID or AWS_SECRET_ACCESS_KEY")
    #expect(throws: S3OpenError.self) { try S3Credentials(environment: ["AWS_ACCESS_KEY_ID": "id"]) }
  }

  @Test func addresses() throws {
    let cloud = try S3Address("s3://blobs@s3.eu-central-1.amazonaws.com")
    #expect(cloud.origin == "https://s3.eu-central-1.amazonaws.com")
    #expect((cloud.bucket, cloud.prefix) == ("blobs", ""))
    let local = try S3Address("s3+http://blobs@127.0.0.1:9000/team/one")
    #expect((local.origin, local.prefix) == ("http://127.0.0.1:9000", "team/one/"))
    #expect(local.description == "s3+http://blobs@127.0.0.1:9000/team/one")
    #expect(try S3Address("s3+http://blobs@[::1]:9000").origin == "http://[::1]:9000")
  }

  @Test(arguments: [
    "", "s3://", "s3://blobs", "s3://blobs@", "s3://b@h", "s3://Blobs@h", "https://blobs@h", "s3://a@b@c",
    "s3://blobs@h:x y", "s3://blobs@h/", "s3://blobs@h/a//b", "s3://blobs@h/../x", "s3+http://blobs@10.0.0.1",
    "s3+http://blobs@127.0.0.1.example.org", "s3+http://blobs@localhost.example.org:80", "s3://blobs@h?x=1",
  ])
  func addressesThatAreRefused(_ text: String) {
    let error = #expect(throws: S3OpenError.self) { try S3Address(text) }
    guard case .address? = error?.reason else {
      Issue.record("\(text) is refused for another reason")
      return
    }
  }

  @Test func answersAreParsed() throws {
    let text = """
      <?xml version="1.0" encoding="UTF-8"?><!-- x --><List xmlns="http://x/"><A><Key>a&amp;b</Key><E/></A>
      <A><Key>&quot;c&quot; &amp;lt;</Key></A><Token>t&unknown;</Token></List>
      """
    let node = try XMLNode(Array(text.utf8))
    #expect(node.name == "List")
    #expect(node.all("A").map { $0["Key"] } == ["a&b", "\"c\" &lt;"])
    #expect((node["Token"], node["None"]) == ("t&unknown;", nil))
  }

  @Test(arguments: [
    "", "x", "<", "<a>", "<a></b>", "<a><b></a></b>", "<!DOCTYPE x><a></a>", "</a>", "< a></a>",
    String(repeating: "<a>", count: 100) + String(repeating: "</a>", count: 100),
  ])
  func malformedAnswersAreRefused(_ text: String) {
    #expect(throws: XMLNode.Malformed.self) { try XMLNode(Array(text.utf8)) }
  }
}
