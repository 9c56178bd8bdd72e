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
  var screen = Screen.empty
  var sync = ZDCSyncState()
  /// The list of the page's task, which may have been moved since the page was opened.
  var taskListID: String?
  /// The person of the page, if it shows one.
  var person: Person?
  /// Users who are unknown, and have sent messages; nil while the server cannot be asked.
  var senders: [UnknownSender]?
  /// The activity of a deletion that has led to this page, which then offers to undo it.
  var deletion: String?

  var base: String { "/account/\(user)" }
  var list: ListItem? { screen.lists.first { $0.id == place.listID } }

  var document: HTML {
    let content = content
    return Document.html(
      title: title,
      body: """
        <div id="app" data-live="\(base)/live?seen=\(content.version)&amp;path=\(base)\(place.path)">\(content)</div>
        """, notice: deletionNotice)
  }

  private var deletionNotice: HTML {
    guard let entry = screen.activity.first(where: { $0.id == deletion }), entry.canUndo, !entry.isUndone else {
      return .empty
    }
    let restored = entry.change == "deleted" ? "Restored." : "Partly restored."
    return """
      <bdi>\(entry.title.displayed)</bdi> \(entry.change)\(form("/undo", """
        <input type="hidden" name="id" value="\(entry.id)"><button class="quiet" data-done="\(restored)">Undo</button>
        """))
      """
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

  private static let noList = "This list was deleted, or you no longer have access."

  private var main: HTML {
    switch place {
    case .lists: overview
    case .list: list.map(listPane) ?? Document.problem(Self.noList)
    case .task(let id, _): screen.tasks.first { $0.id == id }.flatMap(taskPane) ?? noTask(id)
    case .sharing:
      list.map { SharingPane(page: self, list: $0).html } ?? Document.problem(Self.noList)
    case .access:
      list.flatMap { list in person.map { PersonPane(page: self, person: $0, list: list.isOwn ? list : nil).html } }
        ?? Document.problem("This list was deleted.")
    case .person:
      person.map { PersonPane(page: self, person: $0, list: nil).html }
        ?? Document.problem("This device does not know this person.")
    case .invitations: InvitationsPane(page: self).html
    case .activity: activityPane
    }
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
