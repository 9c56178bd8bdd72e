import Foundation
import Testing
import TodoKit
import ZeroDarkCloudTesting

@testable import zdc_todo

#if canImport(FoundationNetworking)
  import FoundationNetworking
#endif

/// Requests to the web interface without a browser. `make test-browser` uses a browser.
@Suite(.timeLimit(.minutes(5))) struct PageTests {
  /// Does not follow redirections, and keeps no cookies.
  final class Client: NSObject, URLSessionTaskDelegate, Sendable {
    func urlSession(
      _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
      newRequest request: URLRequest, completionHandler: @escaping @Sendable (URLRequest?) -> Void
    ) { completionHandler(nil) }

    func send(
      _ url: String, _ headers: [String: String] = [:], body: String? = nil
    ) async throws -> (Int, String, [String: String]) {
      let configuration = URLSessionConfiguration.ephemeral
      configuration.httpShouldSetCookies = false
      configuration.httpCookieStorage = nil
      var request = URLRequest(url: try #require(URL(string: url)))
      for (name, value) in headers { request.setValue(value, forHTTPHeaderField: name) }
      if let body { (request.httpMethod, request.httpBody) = ("POST", Data(body.utf8)) }
      let session = URLSession(configuration: configuration, delegate: self, delegateQueue: nil)
      defer { session.invalidateAndCancel() }
      let (data, response) = try await session.data(for: request)
      let http = try #require(response as? HTTPURLResponse)
      let fields = http.allHeaderFields.reduce(into: [String: String]()) {
        $0["\($1.key)".lowercased()] = "\($1.value)"
      }
      return (http.statusCode, String(decoding: data, as: UTF8.self), fields)
    }
  }

  struct Browser: Sendable {
    let client = Client()
    let server: TestServer
    let origin: String
    let user: String
    let cookie: String

    func get(_ path: String) async throws -> (Int, String) {
      let (status, text, _) = try await client.send(origin + path, ["Cookie": cookie])
      return (status, text)
    }

    func post(_ path: String, _ body: String, origin other: String? = nil) async throws -> (Int, String) {
      let (status, text, _) = try await client.send(
        "\(origin)/account/\(user)\(path)", ["Cookie": cookie, "Origin": other ?? origin], body: body)
      return (status, text)
    }
  }

  /// Runs `body` with a page whose account has the list Groceries.
  func withPage(_ body: @Sendable (Browser, _ link: String, _ listID: String) async throws -> Void) async throws {
    let (server, folder) = (try await TestServer.start(), try TemporaryFolder())
    let address = server.url.absoluteString
    let manager = try ZDCManager(server: address, folder: folder.url, syncsAutomatically: false)
    let account = try await manager.createAccount().account
    let listID = try await account.createList("Groceries")
    try await account.addTask("milk", to: listID)
    try await manager.close()
    let (process, output) = (Process(), Pipe())
    process.executableURL = URL(fileURLWithPath: CommandLine.arguments[0]).deletingLastPathComponent()
      .appendingPathComponent("zdc-todo")
    let port = "\(try await freePort())"
    process.arguments = ["serve", "--port", port, "--folder", folder.url.path, "--server", address]
    process.standardOutput = output
    try process.run()
    defer { process.terminate() }
    let line = String(decoding: output.fileHandleForReading.availableData, as: UTF8.self)
    let link = String(try #require(line.split(whereSeparator: \.isWhitespace).last))
    let (status, _, headers) = try await Client().send(link)
    #expect(status == 303)
    let cookie = try #require(headers["set-cookie"]?.split(separator: ";").first).description
    #expect(
      headers["set-cookie"]?.contains("HttpOnly") == true && headers["set-cookie"]?.contains("SameSite=Strict") == true)
    let origin = "http://127.0.0.1:\(port)"
    try await body(Browser(server: server, origin: origin, user: account.user, cookie: cookie), link, listID)
    try await server.stop()
  }

  /// The system chooses the port of a server, which is free again after its end.
  private func freePort() async throws -> Int {
    let server = try await TestServer.start()
    try await server.stop()
    return try #require(server.url.port)
  }

  @Test func onlyTheBrowserWithTheLinkIsLetIn() async throws {
    try await withPage { browser, _, _ in
      let (client, origin) = (browser.client, browser.origin)
      let wrong = String(browser.cookie.dropLast() + "_")
      let refused = [
        try await client.send(origin).0, try await client.send(origin + "/?token=0").0,
        try await client.send(origin + "/style.css").0, try await client.send(origin, ["Cookie": wrong]).0,
      ]
      #expect(refused == [401, 401, 401, 401])
      let (status, page, headers) = try await client.send(
        "\(origin)/account/\(browser.user)", ["Cookie": browser.cookie])
      #expect(status == 200 && page.contains("Groceries") && !page.contains("milk"))
      #expect(headers["content-security-policy"]?.hasPrefix("default-src 'none'; script-src 'self'") == true)
      #expect(headers["x-content-type-options"] == "nosniff")
    }
  }

  @Test func theBrowserKeepsStyleAndScript_andNoPage() async throws {
    try await withPage { browser, _, _ in
      let cookie = ["Cookie": browser.cookie]
      let url = "\(browser.origin)/account/\(browser.user)"
      let (_, page, headers) = try await browser.client.send(url, cookie)
      #expect(headers["cache-control"] == "no-store")
      let files = page.matches(of: /(?:href|src)="(\/[a-z]+\.(?:css|js|svg)\?v=\w+)"/).map(\.output.1)
      #expect(files.count == 3)
      for file in files {
        let (status, _, headers) = try await browser.client.send(browser.origin + file, cookie)
        #expect(status == 200 && headers["cache-control"]?.contains("immutable") == true)
      }
    }
  }

  @Test func otherSitesAndOtherNamesAreRefused() async throws {
    try await withPage { browser, _, listID in
      let (list, url) = ("/list/\(listID)", "\(browser.origin)/account/\(browser.user)")
      let (client, cookie) = (browser.client, ["Cookie": browser.cookie])
      let port = browser.origin.split(separator: ":").last ?? ""
      let refused = [
        try await browser.post(list + "/tasks", "title=bread", origin: "http://evil.example").0,
        try await browser.post(list + "/tasks", "title=bread", origin: "null").0,
        try await client.send(url + list + "/tasks", cookie, body: "title=bread").0,
        try await client.send(url, cookie.merging(["Sec-Fetch-Site": "cross-site"]) { $1 }).0,
        try await client.send(url, cookie.merging(["Host": "evil.example:80"]) { $1 }).0,
        try await client.send(url, cookie.merging(["Host": "localhost:\(port)"]) { $1 }).0,
      ]
      #expect(refused == [403, 403, 403, 403, 421, 421])
      let before = try await browser.get("/account/\(browser.user)\(list)").1
      let done = try await browser.post(list + "/tasks", "title=bread").0
      let after = try await browser.get("/account/\(browser.user)\(list)").1
      #expect(!before.contains("bread") && done == 303 && after.contains("bread"))
    }
  }

  @Test func hostileTitlesAreText() async throws {
    try await withPage { browser, _, listID in
      let title = "<script>alert(1)</script>\u{202E}\u{200B}\"'&"
      let encoded = try #require(title.addingPercentEncoding(withAllowedCharacters: .alphanumerics))
      let status = try await browser.post("/list/\(listID)/tasks", "title=\(encoded)&priority=none").0
      let page = try await browser.get("/account/\(browser.user)/list/\(listID)").1
      #expect(status == 303)
      #expect(page.contains("<bdi class=\"name\">&lt;script&gt;alert(1)&lt;/script&gt;&quot;&#39;&amp;</bdi>"))
      #expect(!page.contains("<script>alert"))
    }
  }

  @Test func oversizedBodiesAndUnknownPagesAreRefused() async throws {
    try await withPage { browser, _, listID in
      let (path, long) = ("/list/\(listID)/tasks", String(repeating: "x", count: 530_000))
      let posts = [
        try await browser.post(path, "title=\(long)").0, try await browser.post(path, "title=\(long.prefix(1_001))").0,
        try await browser.post(path, "title=%20").0, try await browser.post("/list/none/rename", "title=x").0,
        try await browser.post("/task/none/done", "done=1").0, try await browser.post(path, "title[a]=1&title=2").0,
      ]
      #expect(posts == [413, 422, 422, 404, 404, 422])
      let pages = [
        try await browser.get("/account/none"), try await browser.get("/account/none/words"),
        try await browser.get("/none"), try await browser.get("/account/\(browser.user)/task/none/thumbnail"),
      ]
      #expect(pages.map(\.0) == [404, 404, 404, 200])
      #expect(pages.allSatisfy { !$0.1.contains("HTTPError") && !$0.1.contains("ZDCError") })
    }
  }

  @Test func anOpenForm_doesNotOverwriteWhatChangedSince() async throws {
    try await withPage { browser, _, listID in
      let list = try await browser.get("/account/\(browser.user)/list/\(listID)").1
      let task = try #require(list.split(separator: "data-task=\"").last?.split(separator: "\"").first)
      let forms = [
        "old-title=milk&title=milk&old-details=&details=two%0D%0Abottles&old-priority=normal&priority=normal",
        "old-title=milk&title=oat+milk&old-details=&details=&old-priority=normal&priority=normal",
      ]
      for form in forms { #expect(try await browser.post("/task/\(task)/edit", form).0 == 303) }
      let explanation = try await browser.get("/account/\(browser.user)/explain/\(task)").1
      #expect(explanation.contains("in the cloud") && !explanation.contains("&lt;"), "markup is no text")
      let page = try await browser.get("/account/\(browser.user)/list/\(listID)/\(task)").1
      #expect(page.contains("name=\"title\" value=\"oat milk\"") && page.contains("\ntwo\nbottles</textarea>"))
    }
  }

  /// The page's limit for details is 10,000 characters. A form has the old ones too, and each character takes up to nine bytes.
  @Test func longDetailsOfAnyScriptAreStored() async throws {
    try await withPage { browser, _, listID in
      let list = try await browser.get("/account/\(browser.user)/list/\(listID)").1
      let task = try #require(list.split(separator: "data-task=\"").last?.split(separator: "\"").first)
      let water = String(repeating: "%E6%B0%B4", count: 10_000)
      let form = "old-title=milk&title=milk&old-priority=normal&priority=normal"
      #expect(try await browser.post("/task/\(task)/edit", "\(form)&old-details=&details=\(water)").0 == 303)
      #expect(try await browser.post("/task/\(task)/edit", "\(form)&old-details=\(water)&details=\(water)x").0 == 303)
      let page = try await browser.get("/account/\(browser.user)/list/\(listID)/\(task)").1
      #expect(page.contains(String(repeating: "水", count: 10_000) + "x</textarea>"))
    }
  }

  @Test func picturesAreNotCached_andTheWordsCanBeShownAgain() async throws {
    try await withPage { browser, _, _ in
      let (url, cookie) = ("\(browser.origin)/account/\(browser.user)", ["Cookie": browser.cookie])
      let headers = try await browser.client.send(url + "/task/none/thumbnail", cookie).2
      #expect(headers["cache-control"] == "no-store")
      let words = try await browser.get("/account/\(browser.user)/words").1
      #expect(words.split(separator: "<li>").count == 25)
    }
  }
}
