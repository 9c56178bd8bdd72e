import Foundation
import HTTPTypes
import Hummingbird
import TodoKit
import ZeroDarkCloud

/// A page of an account, rendered from a snapshot of the database.
struct Page: Sendable {
  var user: String
  var accounts: [String]
  var place: Place
  var screen: Screen
  var sync = ZDCSyncState()
  /// The person of the page, if it shows one.
  var person: Person?
  /// Users who are unknown, and have sent messages; nil while the server cannot be asked.
  var senders: [UnknownSender]?

  var base: String { "/account/\(user)" }
  var list: ListItem? { screen.lists.first { $0.id == place.listID } }

  var document: HTML {
    Self.document(
      title: title,
      body: """
        <div id="app" data-live="\(base)/live?path=\(base)\(place.path)">\(content)</div>
        """)
  }

  private var title: String {
    switch place {
    case .activity: "Activity"
    case .invitations: "Invitations"
    case .person: person?.label.displayed ?? "Person"
    case .lists, .list, .task, .sharing, .access: list?.title.displayed ?? "Lists"
    }
  }

  /// The part of the document that `Live` sends again after each change.
  var content: HTML {
    """
    <a class="skip" href="#main">Skip to the tasks</a>
    \(sidebar)<main id="main" tabindex="-1" class="\(place.mainClass)">\(main)</main>
    """
  }

  private var main: HTML {
    switch place {
    case .lists: overview
    case .list: list.map(listPane) ?? Self.problem("This list was deleted, or you no longer have access.")
    case .task(let id, _):
      screen.tasks.first { $0.id == id }.flatMap(taskPane) ?? Self.problem("This task was deleted.")
    case .sharing: list.map(sharingPane) ?? Self.problem("This list was deleted, or you no longer have access.")
    case .access:
      list.flatMap { list in person.map { personPane($0, list: list.isOwn ? list : nil) } }
        ?? Self.problem("This list was deleted.")
    case .person: person.map { personPane($0, list: nil) } ?? Self.problem("This device does not know this person.")
    case .invitations: invitationsPane
    case .activity: activityPane
    }
  }

  // MARK: Documents

  static func document(title: String, body: HTML) -> HTML {
    """
    <!doctype html>
    <html lang="en"><head><meta charset="utf-8"><title>\(title) – ZeroDark Todo</title>
    <meta name="viewport" content="width=device-width, initial-scale=1"><meta name="color-scheme" content="light dark">
    <link rel="icon" href="/icon.svg"><link rel="stylesheet" href="/style.css"><script src="/page.js" defer></script></head>
    <body>\(body)<div id="notice" role="status" aria-live="polite"></div></body></html>
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

  /// A form. With `live`, the script sends it and the page stays open.
  func form(_ action: String, class name: String = "", live: Bool = true, _ fields: HTML) -> HTML {
    """
    <form method="post" action="\(base)\(action)" class="\(name)"\(live ? " data-quiet" : HTML.empty)>\(fields)</form>
    """
  }
}

extension Place {
  fileprivate var mainClass: String {
    switch self {
    case .lists: "at-lists"
    case .list: "at-list"
    case .task: "at-task"
    case .sharing: "at-sharing"
    case .access, .person: "at-person"
    case .invitations: "at-invitations"
    case .activity: "at-activity"
    }
  }
}
