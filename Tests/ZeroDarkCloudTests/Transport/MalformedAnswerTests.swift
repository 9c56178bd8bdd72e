import Foundation
import Testing
import ZDCProtocol
import ZeroDarkCloudTesting

@testable import ZDCAccounts
@testable import ZDCClientAPI
@testable import ZDCSupport
@testable import ZeroDarkCloud

/// Bytes on a socket that no HTTP server sends. Each case ends with a typed error, and the process survives.
@Suite(.timeLimit(.minutes(20))) struct MalformedAnswerTests {
  private static func ask(_ answer: String, times: Int = 2) async throws -> [String] {
    let raw = try RawServer { _ in Array(answer.utf8) }
    defer { raw.end() }
    let transport = try AsyncHTTPTransport(serverURL: raw.url)
    var outcomes: [String] = []
    for _ in 0..<times {
      do {
        let response = try await transport.send(.get(Routes.info))
        outcomes.append("\(response.status) \(try await response.body.collect(upTo: 1 << 20).count)")
      } catch let error as TransportError { outcomes.append(error.code.rawValue) }
    }
    return outcomes
  }

  @Test(
    "F1: a status below 100 is no answer, and does not end the process",
    arguments: ["000", "001", "042", "099", "00", "0", "-1"])
  func statusBelow100(_ status: String) async throws {
    let answers = ["\r\n\r\n", "\r\ncontent-length: 2\r\n\r\nab", "\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n"]
    for rest in answers {
      let outcomes = try await Self.ask("HTTP/1.1 \(status) X\(rest)")
      #expect(outcomes.allSatisfy { ["badAnswer", "cut"].contains($0) }, "\(outcomes)")
    }
  }

  @Test(
    "F1: heads that no server sends end with an error",
    arguments: [
      "HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade\r\n\r\nbytes of another protocol",
      "HTTP/1.1 101 X\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n", "HTTP/9.9 200 OK\r\n\r\n", "\r\n\r\n",
      "HTTP/1.1 200 OK\r\ncontent-length: -1\r\n\r\n",
      "HTTP/1.1 200 OK\r\ncontent-length: 99999999999999999999\r\n\r\n",
      "HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nab", "HTTP/1.1 99999 OK\r\n\r\n",
      "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n-1\r\n\r\n",
      "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nffffffffffffffffff\r\n", "SSH-2.0-x\r\n", "\0\0\0\0",
    ])
  func malformedHeads(_ answer: String) async throws {
    let outcomes = try await Self.ask(answer)
    #expect(outcomes.allSatisfy { TransportError.Code(rawValue: $0) != nil }, "\(outcomes)")
  }

  @Test("F1: a head above its bounds is refused")
  func headBombs() async throws {
    let long = "HTTP/1.1 200 OK\r\nx: " + String(repeating: "a", count: 4 << 20) + "\r\n\r\n"
    let many = "HTTP/1.1 200 OK\r\n" + String(repeating: "x: a\r\n", count: 200_000) + "\r\n"
    for answer in [long, many] { #expect(try await Self.ask(answer, times: 1) == ["badAnswer"]) }
  }

  @Test("F1: informational answers before the real one are skipped, a flood of them is refused")
  func informationalAnswers() async throws {
    let hint = "HTTP/1.1 103 Early Hints\r\nlink: </x>\r\n\r\n"
    let final = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nab"
    #expect(try await Self.ask(hint + hint + final) == ["200 2", "200 2"])
    #expect(try await Self.ask(String(repeating: hint, count: 10_000) + final, times: 1) == ["badAnswer"])
  }

  @Test("F1: answers that no request asked for end the connection, not the process")
  func answersWithoutARequest() async throws {
    let answer = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nab"
    let raw = try RawServer(closes: false) { _ in Array((answer + answer + "HTTP/1.1 000 X\r\n\r\n").utf8) }
    defer { raw.end() }
    let transport = try AsyncHTTPTransport(serverURL: raw.url)
    for _ in 0..<5 {
      do {
        let response = try await transport.send(.get(Routes.info))
        #expect(try await response.body.collect(upTo: 10) == Array("ab".utf8))
      } catch let error as TransportError {
        // The request was assigned to a connection that was being closed.
        #expect(error.code == .cut)
      }
    }
  }

  @Test("a GET whose connection ended before the answer is sent once more, a POST is not")
  func endedConnection_repeatsAGetOnly() async throws {
    let endings = Locked(1)
    let raw = try RawServer { _ in
      let ends = endings.withLock { endings in
        endings -= 1
        return endings >= 0
      }
      return ends ? [] : Array("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n".utf8)
    }
    defer { raw.end() }
    let transport = try AsyncHTTPTransport(serverURL: raw.url)
    #expect(try await transport.send(.get(Routes.info)).status == 200)
    endings.withLock { $0 = 2 }
    await #expect(throws: TransportError.self) { try await transport.send(.get(Routes.info)) }
    endings.withLock { $0 = 1 }
    await #expect(throws: TransportError.self) {
      try await transport.send(.bytes(.post, Routes.commits, [], type: "x"))
    }
    // The POST does not reach the server if the client notices late that the connection has ended.
    #expect((4...5).contains(raw.requests.count))
  }

  @Test("F1: a login against such a server ends with a typed error")
  func loginAgainstSuchAServer() async throws {
    let raw = try RawServer { _ in Array("HTTP/1.1 000 X\r\n\r\n".utf8) }
    defer { raw.end() }
    let folder = try TemporaryFolder()
    let device = try NetworkDevice(url: raw.url, folder: folder.url, hooks: .init())
    let error = await #expect(throws: (any Error).self) { try await device.users.createAccount() }
    #expect(error is TransportError || error is ZDCError, "\(String(describing: error))")
    try device.close()
  }
}

/// Challenges and sessions of sizes that no zdc-server produces.
@Suite struct LoginSizeTests {
  private static func login(nonceBytes: Int = 32, tokenBytes: Int = 32) async throws -> (any Error)? {
    try await NetworkWorld.run { world in
      let device = try world.device()
      let user = try await device.users.createAccount().localUser
      device.transport.set(
        .init(after: { request, response in
          if request.path == Routes.challenge, nonceBytes != 32 {
            let nonce = WireBytes([UInt8](repeating: 1, count: nonceBytes))
            return try Self.answer(ChallengeResponse(nonce: nonce, expiresMs: 1))
          }
          if request.path == Routes.login || request.path == Routes.deviceLogin, tokenBytes != 32 {
            let user = try ZDCLocalUserManager.userID(user.uuid)
            let token = WireBytes([UInt8](repeating: 1, count: tokenBytes))
            return try Self.answer(SessionResponse(token: token, userID: user, expiresMs: .max))
          }
          return response
        }))
      do {
        _ = try await device.api(user).zones(since: nil)
        return nil
      } catch { return error }
    }
  }

  private static func answer(_ value: some Encodable) throws -> TransportResponse {
    let body = [UInt8](try JSONEncoder().encode(value))
    return TransportResponse(
      status: 200, headers: ["content-type": "application/json"], body: TransportBody(bytes: body))
  }

  @Test("hostile small: a nonce of no size that a server makes is not signed", arguments: [0, 16, 31, 33, 1 << 20])
  func nonceOfAnotherSize_isNotSigned(bytes: Int) async throws {
    let error = try await Self.login(nonceBytes: bytes)
    #expect((error as? TransportError)?.code == .badAnswer, "\(String(describing: error))")
  }

  @Test("hostile small: a token of another size is not taken", arguments: [0, 1, 31, 33, 1 << 20])
  func tokenOfAnotherSize_isNotTaken(bytes: Int) async throws {
    let error = try await Self.login(tokenBytes: bytes)
    #expect((error as? TransportError)?.code == .badAnswer, "\(String(describing: error))")
  }
}
