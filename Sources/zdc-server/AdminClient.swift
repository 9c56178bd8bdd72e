import AsyncHTTPClient
import Foundation
import NIOCore
import NIOHTTP1
import ZDCProtocol
import ZDCServer

/// Sends an operator's requests to a running server.
struct AdminClient {
  private let base: String
  private let socket: String
  private static let maximumAnswerBytes = 16 << 20

  init(socket: String) {
    self.socket = socket
    base = "http+unix://" + (socket.addingPercentEncoding(withAllowedCharacters: .alphanumerics) ?? "")
  }

  func get<Answer: Decodable>(_ type: Answer.Type, _ path: String) async throws -> Answer {
    let bytes = try await send("GET", path)
    do { return try JSONDecoder().decode(type, from: bytes) } catch {
      throw Failure(.software, "the running server has another version: use the zdc-server program of that version")
    }
  }

  /// - Throws: ``Failure``.
  @discardableResult func send(_ method: String, _ path: String, body: (any Encodable)? = nil) async throws -> Data {
    var request = HTTPClientRequest(url: base + path)
    request.method = .init(rawValue: method)
    if let body { request.body = .bytes(try JSONEncoder().encode(body)) }
    do {
      let answer = try await HTTPClient.shared.execute(request, timeout: .seconds(30))
      let bytes = Data(try await answer.body.collect(upTo: Self.maximumAnswerBytes).readableBytesView)
      guard answer.status.code < 300 else { throw Self.failure(answer.status.code, bytes) }
      return bytes
    } catch let failure as Failure { throw failure } catch { throw noServer(error) }
  }

  private static func failure(_ status: UInt, _ body: Data) -> Failure {
    guard let error = try? JSONDecoder().decode(ServerError.self, from: body) else {
      return Failure(.software, "the server answers with status \(status)")
    }
    let exit: ExitStatus =
      switch error.code {
      case .notFound: .noInput
      case .invalidRequest, .conflict: .usage
      default: error.retryable ? .unavailable : .software
      }
    return Failure(exit, error.message)
  }

  private func noServer(_ error: any Error) -> Failure {
    guard FileManager.default.fileExists(atPath: socket) else {
      return Failure(
        .noInput, "no server listens on \(socket)", hint: "name the folder of a running server with --data")
    }
    guard access(socket, R_OK | W_OK) == 0 else {
      return Failure(.noPermission, "cannot open \(socket)", hint: "run the command as the user who runs the server")
    }
    return Failure(.unavailable, "the server on \(socket) does not answer")
  }
}
