import Foundation
import HTTPTypes
import Hummingbird
import TodoKit
import ZeroDarkCloud

/// The routes of the web interface.
///
/// The pages work without scripts: a form handler stores the change and redirects to the page. The script in `page.js`
/// adds live updates.
struct Site: Sendable {
  typealias Context = BasicRequestContext

  let manager: ZDCManager

  func router(_ guarding: Guard) -> Router<Context> {
    let router = Router(context: Context.self)
    router.add(middleware: guarding)
    addFiles(to: router)
    addAccounts(to: router)
    let account = router.group("account/:user")
    addPages(to: account)
    addLists(to: account)
    addTasks(to: account)
    addPhotos(to: account)
    addSharing(to: account)
    addPeople(to: account)
    return router
  }

  /// The address of a style, script or image of the program. It names the version, so a browser keeps the file.
  static func address(of file: String) -> String { "/\(file)?v=\(version)" }

  private static let version = String(
    UInt(bitPattern: [PackageResources.style_css, PackageResources.page_js].hashValue), radix: 36)

  private func addFiles(to router: Router<Context>) {
    let files: [(RouterPath, String, [UInt8])] = [
      ("style.css", "text/css; charset=utf-8", PackageResources.style_css),
      ("page.js", "text/javascript; charset=utf-8", PackageResources.page_js),
      ("icon.svg", "image/svg+xml", Array(Icon.tab.utf8)),
    ]
    for (path, type, bytes) in files {
      router.get(path) { _, _ in Self.file(bytes, type: type) }
    }
  }

  static func file(_ bytes: some Sequence<UInt8>, type: String) -> Response {
    Response(
      status: .ok, headers: [.contentType: type, .cacheControl: "private, max-age=31536000, immutable"],
      body: ResponseBody(byteBuffer: ByteBuffer(bytes: bytes)))
  }

  // MARK: Accounts

  private func addAccounts(to router: Router<Context>) {
    router.get("/") { _, _ in
      guard let first = try await manager.accounts().first else {
        return Document.response(Document.welcome(isFirst: true))
      }
      return .redirect(to: "/account/\(first.user)")
    }
    router.get("welcome") { _, _ in
      Document.response(Document.welcome(isFirst: try await manager.accounts().isEmpty))
    }
    router.post("accounts") { _, _ in
      let (account, _) = try await manager.createAccount()
      return Response.redirect(to: "/account/\(account.user)/words")
    }
    router.post("login") { request, _ in
      let words = try await Form(request)["words"].split(whereSeparator: \.isWhitespace).map { $0.lowercased() }
      return Response.redirect(to: "/account/\(try await manager.logIn(words: words).user)")
    }
  }

  @Sendable private func showWords(_ request: Request, _ context: Context) async throws -> Response {
    let account = try chosen(context)
    return Document.response(Document.words(try await account.words(), user: account.user))
  }

  /// Asks for three of the words.
  @Sendable private func askForWords(_ request: Request, _ context: Context) async throws -> Response {
    let positions = Array((0..<24).shuffled().prefix(3).sorted())
    let user = try context.parameters.decoded("user")
    return Document.response(Document.check(positions, user: user, isWrong: request.uri.query != nil))
  }

  @Sendable private func checkWords(_ request: Request, _ context: Context) async throws -> Response {
    let (account, form) = (try chosen(context), try await Form(request))
    let isRight = form.confirms(try await account.words())
    return Response.redirect(to: "/account/\(account.user)\(isRight ? "" : "/check?wrong")")
  }

  // MARK: Pages

  private func addPages(to account: RouterGroup<Context>) {
    account.get("words", use: showWords)
    account.get("check", use: askForWords)
    account.post("check", use: checkWords)
    let paths: [RouterPath] = [
      "", "activity", "invitations", "person/:person", "list/:list", "list/:list/:task", "list/:list/share",
      "list/:list/share/:person",
    ]
    for path in paths {
      account.get(path) { request, context in
        guard let place = Place(path: request.uri.path) else { throw HTTPError(.notFound) }
        let deletion = request.uri.queryParameters["deleted"].map(String.init)
        return Document.response(try await page(place, deletion: deletion, context).document)
      }
    }
    account.get("live") { request, context in
      let path = request.uri.queryParameters["path"].map(String.init)
      guard let place = path.flatMap(Place.init) else { throw HTTPError(.notFound) }
      return Live.response(of: try await frame(place, context), manager, request)
    }
    account.get("sealed/:node", use: sealed)
    account.get("explain/:task", use: explain)
  }

  @Sendable private func explain(_ request: Request, _ context: Context) async throws -> Response {
    let (account, task) = (try chosen(context), try context.parameters.decoded("task"))
    guard let item = try await account.item(task).task else { throw HTTPError(.notFound) }
    let back = "/account/\(account.user)\(Place.task(task, inList: item.listID).path)"
    return Document.response(Document.explanation(try await account.explain(task), title: item.title, back: back))
  }

  private func page(_ place: Place, deletion: String? = nil, _ context: Context) async throws -> Page {
    var page = try await frame(place, context)
    page.deletion = deletion
    page.screen = try await chosen(context).screen(
      list: place.listID, withActivity: place == .activity || deletion != nil)
    if let task = place.taskID { page.taskListID = try await chosen(context).listID(ofTask: task) }
    return page
  }

  /// Returns a page without its screen.
  private func frame(_ place: Place, _ context: Context) async throws -> Page {
    let account = try chosen(context)
    let users = try await manager.accounts().map(\.user)
    guard users.contains(account.user) else {
      throw HTTPError(.notFound, message: "This account is not on this device.")
    }
    return Page(
      user: account.user, accounts: users, place: place,
      sync: try await account.session.syncManager.syncState(forLocalUserID: account.user),
      person: try place.userID(own: account.user).map(account.people.person),
      senders: place == .invitations ? try await Live.unknownSenders(account) : nil)
  }

  @Sendable private func sealed(_ request: Request, _ context: Context) async throws -> Response {
    let (account, id) = (try chosen(context), try context.parameters.decoded("node"))
    let node = try await account.sealed(id)
    var (mine, place) = ([("Title", node.title.displayed)], Place.list(id))
    if try await !account.screen(withActivity: false).lists.contains(where: { $0.id == id }),
      let task = try await account.item(id).task
    {
      place = .task(id, inList: task.listID)
      mine += task.details.isEmpty ? [] : [("Details", task.details.displayed)]
      mine += [("Priority", task.priority.rawValue), ("Done", task.isDone ? "yes" : "no")]
    }
    return Document.response(Document.sealed(node, mine: mine, back: "/account/\(account.user)\(place.path)"))
  }

  func chosen(_ context: Context) throws -> Account { try manager.account(context.parameters.decoded("user")) }
}

extension Parameters {
  /// Returns a parameter of the path. Browsers encode some characters of node IDs.
  func decoded(_ name: String) throws -> String {
    guard let text = try require(name).removingPercentEncoding else { throw HTTPError(.badRequest) }
    return text
  }
}

/// The fields of a form. The form of a task has its details twice, the old ones too, and a character takes up to 9 bytes.
struct Form {
  private static let maxBytes = 512 << 10
  private let fields: [String: String]

  init(_ request: Request) async throws {
    var request = request
    let body = try await request.collectBody(upTo: Self.maxBytes)
    do {
      fields = try URLEncodedFormDecoder().decode([String: String].self, from: String(buffer: body))
    } catch {
      throw HTTPError(.unprocessableContent, message: "This form is not valid.")
    }
  }

  subscript(name: String) -> String { fields[name] ?? "" }

  /// Returns the value of a field, or nil if the user did not change it: it equals the hidden field with the old value.
  func change(_ name: String) -> String? {
    let (new, old) = (fields[name].map(Self.withoutReturns), fields["old-\(name)"].map(Self.withoutReturns))
    return new == old ? nil : new
  }

  /// Browsers send line ends as CR LF.
  private static func withoutReturns(_ text: String) -> String { text.replacingOccurrences(of: "\r\n", with: "\n") }

  func title() throws -> String {
    let title = self["title"].trimmingCharacters(in: .whitespacesAndNewlines)
    guard !title.isEmpty, title.utf8.count <= 1_000 else {
      throw Failure(.usage, "title", "A title has 1 to 1000 bytes.")
    }
    return title
  }

  /// Whether three fields `w0` to `w23` have the words at their places.
  fileprivate func confirms(_ words: [String]) -> Bool {
    let given = fields.filter { $0.key.hasPrefix("w") }
    return given.count == 3
      && given.allSatisfy { name, value in
        guard let position = Int(name.dropFirst()), words.indices.contains(position) else { return false }
        return words[position] == value.trimmingCharacters(in: .whitespaces).lowercased()
      }
  }
}
