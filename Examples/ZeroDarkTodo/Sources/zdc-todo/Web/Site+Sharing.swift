import Foundation
import HTTPTypes
import Hummingbird
import TodoKit
import ZeroDarkCloud

// Form handlers for shared lists, people and invitations.
extension Site {
  func addSharing(to account: RouterGroup<Context>) {
    account.post("list/:list/share/find", use: find)
    account.post("list/:list/share/:person", use: share)
    account.post("list/:list/unshare/:person", use: unshare)
    account.post("list/:list/leave", use: leave)
    account.post("invitations/:invitation/accept", use: accept)
    account.post("invitations/:invitation/decline", use: decline)
  }

  func addPeople(to account: RouterGroup<Context>) {
    account.post("handle") { request, context in
      let handle = try await Form(request)["handle"].filter { !$0.isWhitespace }
      try await chosen(context).people.chooseHandle(handle)
      return back(request, context)
    }
    account.post("person/:person/name", use: setName)
    account.post("person/:person/verify") { request, context in
      try await chosen(context).people.verify(context.parameters.decoded("person"))
      return back(request, context)
    }
    account.post("person/:person/accept") { request, context in
      try await chosen(context).people.acceptNewWords(of: context.parameters.decoded("person"))
      return back(request, context)
    }
    account.post("senders/:person/accept") { _, context in
      let account = try chosen(context)
      try await account.people.accept(context.parameters.decoded("person"))
      return Response.redirect(to: "/account/\(account.user)\(Place.invitations.path)")
    }
    for (path, isBlocking) in [("decline" as String, false), ("block", true)] {
      account.post("senders/:person/\(path)") { _, context in
        let account = try chosen(context)
        try await account.people.decline(context.parameters.decoded("person"), isBlocking: isBlocking)
        return Response.redirect(to: "/account/\(account.user)\(Place.invitations.path)")
      }
    }
  }

  // MARK: Access

  /// Finds a person by ID or handle, fetches their keys, and opens the page with their safety number.
  @Sendable private func find(_ request: Request, _ context: Context) async throws -> Response {
    let (account, list) = (try chosen(context), try context.parameters.decoded("list"))
    let text = try await Form(request)["user"].filter { !$0.isWhitespace }
    do {
      return go(to: .access(try await account.people.find(text).id, toList: list), request, account)
    } catch let error as ZDCError where error.code == .userNotFound {
      throw Failure(.noInput, "noUser", "There is no account with this \(text.hasPrefix("@") ? "handle" : "ID").")
    } catch let error as ZDCError where error.code == .invalidParameter {
      throw Failure(
        .usage, "ownID", text.hasPrefix("@") ? "This is your own handle, or not a valid one." : "This is your own ID.")
    }
  }

  @Sendable private func share(_ request: Request, _ context: Context) async throws -> Response {
    let (list, person) = (try context.parameters.decoded("list"), try context.parameters.decoded("person"))
    let canEdit = try await Form(request)["rights"] != "read"
    try await chosen(context).share(list, with: person, canEdit: canEdit)
    return back(request, context)
  }

  @Sendable private func unshare(_ request: Request, _ context: Context) async throws -> Response {
    let (list, person) = (try context.parameters.decoded("list"), try context.parameters.decoded("person"))
    try await chosen(context).remove(person, from: list)
    return back(request, context)
  }

  @Sendable private func leave(_ request: Request, _ context: Context) async throws -> Response {
    let account = try chosen(context)
    try await account.leave(context.parameters.decoded("list"))
    return .redirect(to: "/account/\(account.user)")
  }

  @Sendable private func setName(_ request: Request, _ context: Context) async throws -> Response {
    let name = try await Form(request)["name"].trimmingCharacters(in: .whitespacesAndNewlines)
    try await chosen(context).people.setName(name, of: context.parameters.decoded("person"))
    return back(request, context)
  }

  // MARK: Invitations

  @Sendable private func accept(_ request: Request, _ context: Context) async throws -> Response {
    let account = try chosen(context)
    let list = try await account.accept(context.parameters.decoded("invitation"))
    return go(to: .list(list), request, account)
  }

  @Sendable private func decline(_ request: Request, _ context: Context) async throws -> Response {
    try await chosen(context).decline(context.parameters.decoded("invitation"))
    return back(request, context)
  }

  /// Opens a page. The script gets its address, because it cannot see where a redirection leads.
  private func go(to place: Place, _ request: Request, _ account: Account) -> Response {
    let address = "/account/\(account.user)\(place.path)"
    guard request.headers[.accept] == "application/json" else { return .redirect(to: address) }
    return Response(status: .ok, body: ResponseBody(byteBuffer: ByteBuffer(string: address)))
  }
}
