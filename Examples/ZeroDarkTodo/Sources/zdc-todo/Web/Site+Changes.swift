import Foundation
import HTTPTypes
import Hummingbird
import TodoKit
import ZeroDarkCloud

// Form handlers. Each runs one transaction and redirects to the page.
extension Site {
  func addLists(to account: RouterGroup<Context>) {
    account.post("lists", use: createList)
    account.post("list/:list/rename", use: renameList)
    account.post("list/:list/delete", use: deleteList)
    account.post("list/:list/tasks", use: addTask)
    account.post("undo", use: undo)
    account.post("dismiss", use: dismiss)
  }

  func addTasks(to account: RouterGroup<Context>) {
    account.post("task/:task/done", use: setDone)
    account.post("task/:task/edit", use: editTask)
    account.post("task/:task/move", use: moveTask)
    account.post("task/:task/list", use: moveTaskToList)
    account.post("task/:task/delete", use: deleteTask)
  }

  func addPhotos(to account: RouterGroup<Context>) {
    account.get("task/:task/thumbnail") { _, context in
      picture(try await chosen(context).photos.thumbnail(of: context.parameters.decoded("task")))
    }
    account.get("task/:task/photo") { _, context in
      picture(try await chosen(context).photos.data(of: context.parameters.decoded("task")))
    }
    account.get("task/:task/photo/progress") { request, context in
      Live.photo(of: try context.parameters.decoded("task"), try chosen(context), request)
    }
    account.post("task/:task/photo", use: attachPhoto)
    account.post("task/:task/photo/remove", use: removePhoto)
  }

  // MARK: Lists

  @Sendable private func createList(_ request: Request, _ context: Context) async throws -> Response {
    let account = try chosen(context)
    let list = try await account.createList(Form(request).title())
    return Response.redirect(to: "/account/\(account.user)/list/\(list)")
  }

  @Sendable private func renameList(_ request: Request, _ context: Context) async throws -> Response {
    try await chosen(context).renameList(context.parameters.decoded("list"), to: Form(request).title())
    return back(request, context)
  }

  @Sendable private func deleteList(_ request: Request, _ context: Context) async throws -> Response {
    let account = try chosen(context)
    let activity = try await account.deleteList(context.parameters.decoded("list"))
    return Response.redirect(to: "/account/\(account.user)?deleted=\(activity)")
  }

  @Sendable private func addTask(_ request: Request, _ context: Context) async throws -> Response {
    let form = try await Form(request)
    try await chosen(context).addTask(
      form.title(), priority: Priority(rawValue: form["priority"]) ?? .normal, to: context.parameters.decoded("list"))
    return back(request, context)
  }

  @Sendable private func undo(_ request: Request, _ context: Context) async throws -> Response {
    try await chosen(context).undo(Form(request)["id"])
    return back(request, context)
  }

  @Sendable private func dismiss(_ request: Request, _ context: Context) async throws -> Response {
    try await chosen(context).dismissMerges(of: Form(request)["task"])
    return back(request, context)
  }

  // MARK: Tasks

  @Sendable private func setDone(_ request: Request, _ context: Context) async throws -> Response {
    let isDone = try await Form(request)["done"] == "1"
    try await chosen(context).edit(context.parameters.decoded("task")) { $0.isDone = isDone }
    return back(request, context)
  }

  @Sendable private func editTask(_ request: Request, _ context: Context) async throws -> Response {
    let form = try await Form(request)
    let (title, details, priority) = (form.change("title"), form.change("details"), form.change("priority"))
    let newTitle = title == nil ? nil : try form.title()
    try await chosen(context).edit(context.parameters.decoded("task")) { task in
      task.title = newTitle ?? task.title
      task.details = details ?? task.details
      task.priority = priority.flatMap { Priority(rawValue: $0) } ?? task.priority
    }
    return back(request, context)
  }

  @Sendable private func moveTask(_ request: Request, _ context: Context) async throws -> Response {
    let before = try await Form(request)["before"]
    try await chosen(context).moveTask(context.parameters.decoded("task"), before: before.isEmpty ? nil : before)
    return back(request, context)
  }

  @Sendable private func moveTaskToList(_ request: Request, _ context: Context) async throws -> Response {
    let (account, list) = (try chosen(context), try await Form(request)["list"])
    try await account.moveTask(context.parameters.decoded("task"), toList: list)
    return Response.redirect(to: "/account/\(account.user)/list/\(list)")
  }

  @Sendable private func deleteTask(_ request: Request, _ context: Context) async throws -> Response {
    let (account, task) = (try chosen(context), try context.parameters.decoded("task"))
    let list = try await account.item(task).task?.listID
    let activity = try await account.deleteTask(task)
    let query = activity.map { "?deleted=\($0)" } ?? ""
    return Response.redirect(to: "/account/\(account.user)\(list.map { "/list/\($0)" } ?? "")\(query)")
  }

  // MARK: Photos

  @Sendable private func attachPhoto(_ request: Request, _ context: Context) async throws -> Response {
    var request = request
    let picture = try Picture(Data(buffer: try await request.collectBody(upTo: Picture.maxBytes)))
    let thumbnail = try await picture.thumbnail()
    try await chosen(context).attachPhoto(
      picture.data, thumbnail: thumbnail, to: context.parameters.decoded("task"))
    let note = thumbnail == nil ? "Without a small version: vipsthumbnail is not installed." : ""
    return Response(status: .ok, body: ResponseBody(byteBuffer: ByteBuffer(string: note)))
  }

  @Sendable private func removePhoto(_ request: Request, _ context: Context) async throws -> Response {
    try await chosen(context).removePhoto(from: context.parameters.decoded("task"))
    return back(request, context)
  }

  /// The first bytes decide the media type, so that a picture of another device is never shown as a document. A missing
  /// picture is replaced by an empty one. Decrypted pictures must not be stored in the browser's cache.
  private func picture(_ data: Data?) -> Response {
    let empty = Data("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"40\" height=\"40\"/>".utf8)
    let type = data.flatMap { Picture.mediaType($0.prefix(12)) }
    var response = Self.file(type == nil ? empty : data ?? empty, type: type ?? "image/svg+xml")
    response.headers[.cacheControl] = "no-store"
    return response
  }

  /// The script needs no page, because `Live` sends it. A browser without scripts is redirected to its page.
  func back(_ request: Request, _ context: Context) -> Response {
    if request.headers[.accept] == "application/json" { return Response(status: .noContent) }
    let referer = request.headers[.referer].flatMap { URL(string: $0)?.path }
    return .redirect(to: referer ?? "/account/\(context.parameters.get("user") ?? "")")
  }
}
