import Foundation
import HTTPTypes
import Hummingbird
import TodoKit
import ZeroDarkCloud

/// Whole documents: the frame of all pages, pages outside of an account, and details of a node.
enum Document {
  static func html(title: String, body: HTML, notice: HTML = .empty) -> HTML {
    """
    <!doctype html>
    <html lang="en"><head><meta charset="utf-8"><title>\(title) – ZeroDark Todo</title>
    <meta name="viewport" content="width=device-width, initial-scale=1"><meta name="color-scheme" content="light dark">
    <link rel="icon" href="\(Site.address(of: "icon.svg"))"><link rel="stylesheet" href="\(Site.address(of: "style.css"))">
    <script src="\(Site.address(of: "page.js"))" defer></script></head>
    <body>\(body)<div id="notice" role="status" aria-live="polite">\(notice)</div></body></html>
    """
  }

  static func response(_ html: HTML, status: HTTPResponse.Status = .ok) -> Response {
    Response(
      status: status, headers: [.contentType: "text/html; charset=utf-8", .cacheControl: "no-store"],
      body: ResponseBody(byteBuffer: ByteBuffer(string: html.text)))
  }

  static func problem(_ message: String) -> HTML {
    """
    <section class="empty"><h1>\(message)</h1><p><a href="/">Back to the lists</a></p></section>
    """
  }

  static func welcome(isFirst: Bool) -> HTML {
    html(
      title: "Welcome",
      body: """
        <main id="main" class="card"><div class="brand">\(Icon.logo)<span>ZeroDark Todo</span></div>
        <h1>To-do lists that only your devices can read</h1>
        <p>An account is 24 words. It has no e-mail address and no password.</p>
        <form method="post" action="/accounts"><button class="primary">Create an account</button></form>
        <h2>Or log in</h2>
        <form method="post" action="/login" class="fields"><label for="words">The 24 words of your account</label>
        <textarea id="words" name="words" rows="4" autocomplete="off" autocapitalize="none" spellcheck="false" required></textarea>
        <button>Log in</button></form>
        \(isFirst ? HTML.empty : "<p><a href=\"/\">Back</a></p>")</main>
        """)
  }

  static func words(_ words: [String], user: String) -> HTML {
    let items: [HTML] = words.map { "<li>\($0)</li>" }
    return html(
      title: "Your words",
      body: """
        <main id="main" class="card"><h1>These 24 words are your account</h1>
        <p>Write them down now, in this order, and keep them where only you can find them. You need them on your next device. \
        Anyone who has them can read everything. Without them, the account cannot be opened.</p>
        <ol class="words">\(items)</ol>
        <form method="get" action="/account/\(user)/check"><button class="primary">I have written them down</button></form></main>
        """)
  }

  static func check(_ positions: [Int], user: String, isWrong: Bool) -> HTML {
    let fields: [HTML] = positions.map { position in
      """
      <label for="w\(position)">Word \(position + 1)</label><input id="w\(position)" name="w\(position)" autocomplete="off" \
      autocapitalize="none" spellcheck="false" required>
      """
    }
    return html(
      title: "Check your words",
      body: """
        <main id="main" class="card"><h1>Confirm your words</h1>
        <p>Type three of them, to check your notes.</p>
        \(isWrong ? "<p class=\"wrong\" role=\"alert\">That does not match. Look at your notes again.</p>" : HTML.empty)
        <form method="post" action="/account/\(user)/check" class="fields">\(fields)<button class="primary">Check</button></form>
        <p><a href="/account/\(user)/words">Show the words again</a></p></main>
        """)
  }

  static func sealed(_ node: SealedNode, mine: [(String, String)], back: String) -> HTML {
    let rows: [HTML] = mine.map { "<dt>\($0)</dt><dd><bdi>\($1)</bdi></dd>" }
    let hex = node.beginning.map { String(format: "%02x", $0) }
    let lines: [HTML] = stride(from: 0, to: hex.count, by: 16).map {
      "\(hex[$0..<min($0 + 16, hex.count)].joined(separator: " "))\n"
    }
    return html(
      title: "What the server sees",
      body: """
        <main id="main" class="wide"><header>\(Page.backLink(back, "Back"))<h1>What the server sees</h1></header>
        <div class="beside"><section><h2>On this device</h2><dl>\(rows)</dl></section>
        <section><h2>On the server</h2><dl><dt>Node</dt><dd><code>\(node.cloudID)</code></dd>
        <dt>Below</dt><dd><code>\(node.parentCloudID)</code></dd><dt>Sealed content</dt><dd>\(node.bytes) bytes, padded</dd></dl>
        <pre tabindex="0" aria-label="The first bytes of the sealed content">\(lines)</pre>
        <p class="hint">The server also sees when it was sent, and by which account. It has no key.</p></section></div></main>
        """)
  }

  static func explanation(_ operations: [ZDCOperationExplanation], title: String, back: String) -> HTML {
    let rows: [HTML] = operations.map { operation in
      """
      <li><strong>\(operation.kind)</strong> \(operation.reason.rawValue), until \(operation.unblockedBy). \
      \(operation.attempts == 0 ? "Not tried yet." : "Tried \(operation.attempts) times.")</li>
      """
    }
    let state: HTML =
      rows.isEmpty
      ? "<p>All changes of this task are in the cloud.</p>"
      : "<p>These changes are not in the cloud yet:</p><ul class=\"reasons\">\(rows)</ul>"
    return html(
      title: "Is it in the cloud?",
      body: """
        <main id="main" class="wide"><header>\(Page.backLink(back, "Back"))<h1><bdi>\(title.displayed)</bdi></h1></header>
        \(state)</main>
        """)
  }
}
