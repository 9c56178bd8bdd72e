internal import HTTPTypes
internal import Hummingbird
internal import ZDCProtocol

#if canImport(FoundationEssentials)
  internal import FoundationEssentials
#else
  internal import Foundation
#endif

/// The few kinds of responses.
extension Response {
  static func json(_ value: some Encodable, status: HTTPResponse.Status = .ok) throws -> Response {
    let data = try JSONEncoder().encode(value)
    return Response(
      status: status, headers: [.contentType: "application/json", .cacheControl: "no-store"],
      body: ResponseBody(byteBuffer: ByteBuffer(bytes: data)))
  }

  /// Returns an answer that may be long, and then counts towards the budget until it is sent.
  static func json(_ value: some Encodable, for call: Call) throws -> Response {
    Response(
      status: .ok, headers: [.contentType: "application/json", .cacheControl: "no-store"],
      body: try call.body([UInt8](JSONEncoder().encode(value))))
  }

  static func octets(_ bytes: [UInt8], for call: Call) throws -> Response {
    Response(
      status: .ok, headers: [.contentType: "application/octet-stream", .cacheControl: "no-store"],
      body: try call.body(bytes))
  }

  static func bundle(_ bytes: [UInt8], for call: Call) throws -> Response {
    Response(
      status: .ok, headers: [.contentType: Bundle.mediaType, .cacheControl: "no-store"], body: try call.body(bytes))
  }

  /// Returns a page of a zone's log with the zone's head; with 409 it answers a commit that came too late.
  static func page(_ page: CommitPage, for call: Call, status: HTTPResponse.Status = .ok) throws -> Response {
    var response = try bundle(page.body, for: call)
    response.status = status
    response.headers[.zone] = "\(page.zone.tree.text)/\(page.zone.root.text)"
    response.headers[.zoneHead] = "\(page.seq):\(page.head.text)"
    if page.more { response.headers[.more] = "1" }
    return response
  }

  /// Returns a whole log, sent piece by piece, and the head where it ends.
  static func log(head page: CommitPage, _ body: ResponseBody) -> Response {
    Response(
      status: .ok,
      headers: [
        .contentType: Bundle.mediaType, .cacheControl: "no-store", .zoneHead: "\(page.seq):\(page.head.text)",
      ], body: body)
  }

  static func text(_ text: String, status: HTTPResponse.Status = .ok) -> Response {
    Response(
      status: status, headers: [.contentType: "text/plain; charset=utf-8"],
      body: ResponseBody(byteBuffer: ByteBuffer(string: text)))
  }

  static var noContent: Response { Response(status: .noContent) }
}

extension HTTPField.Name {
  static let zone = HTTPField.Name(WireHeaders.zone)!
  static let zoneHead = HTTPField.Name(WireHeaders.zoneHead)!
  static let more = HTTPField.Name(WireHeaders.more)!
  static let partHash = HTTPField.Name(WireHeaders.partHash)!
  /// Read by nginx.
  static let accelBuffering = HTTPField.Name("x-accel-buffering")!
  static let requestID = HTTPField.Name("x-request-id")!
  static let forwarded = HTTPField.Name("forwarded")!
  static let forwardedFor = HTTPField.Name("x-forwarded-for")!
}
