import Foundation
import TodoKit
import ZeroDarkCloud

// The lists of an account, and the frame of every page.
extension Page {
  var sidebar: HTML {
    """
    <nav id="side" aria-label="Lists"><div class="brand">\(Icon.logo)<span>ZeroDark Todo</span></div>
    <ul id="lists">\(screen.lists.map(listLink))</ul>
    \(newList)
    <div class="foot"><a id="to-invitations" href="\(base)/invitations"\(current(.invitations))>\(Icon.envelope)Invitations\(waiting)</a>
    <a id="to-activity" href="\(base)/activity"\(current(.activity))>\(Icon.clock)Activity\(unseen)</a>
    \(accountMenu)\(status)</div></nav>
    """
  }

  private func listLink(_ list: ListItem) -> HTML {
    let open = list.counts.tasks - list.counts.done
    let element: HTML = """
      <li id="l-\(list.id)"><a href="\(base)/list/\(list.id)"\(place.listID == list.id ? " aria-current=\"page\"" : HTML.empty)>\
      \(Self.ring(list.counts))<bdi class="name">\(list.title.displayed)</bdi>\(list.members.isEmpty ? HTML.empty : Self.shared)\(Self.badges(list.badges))\
      <span class="count" aria-label="\(open) open">\(open == 0 ? HTML.empty : "\(open)")</span></a></li>
      """
    return HTML(row: "l-\(list.id)", element)
  }

  private var newList: HTML {
    form(
      "/lists", class: "new-list", live: false,
      """
      <label class="hidden" for="new-list">Title of the new list</label>
      <input id="new-list" name="title" placeholder="New list" maxlength="200" autocomplete="off" required>
      <button class="quiet" aria-label="Create the list">\(Icon.plus)</button>
      """)
  }

  /// Shown on a wide screen without a chosen list. A narrow one shows the lists themselves.
  var overview: HTML {
    let (tasks, done) = screen.lists.reduce((0, 0)) { ($0.0 + $1.counts.tasks, $0.1 + $1.counts.done) }
    guard !screen.lists.isEmpty else {
      return """
        <section class="empty"><h1>Create your first list</h1>
        <p>Groceries, a trip, a book to write. Only your devices can read it.</p></section>
        """
    }
    return """
      <section class="empty"><h1>\(tasks - done) open, \(done) done</h1><p>Choose a list.</p></section>
      """
  }

  private var accountMenu: HTML {
    let others: [HTML] = accounts.enumerated().map { number, other in
      """
      <li><a href="/account/\(other)"\(other == user ? " aria-current=\"true\"" : HTML.empty)>\
      Account \(number + 1) <code>\(String(other.prefix(6)))</code></a></li>
      """
    }
    return """
      <details id="accounts"><summary>\(Icon.person)Accounts</summary><ul>\(others)
      <li><a href="/welcome">Add an account</a></li></ul></details>
      """
  }

  private var unseen: HTML {
    screen.losses == 0 ? .empty : "<span class=\"count\">\(screen.losses)</span>"
  }

  private var waiting: HTML {
    let count = screen.invitations.count + (senders?.count ?? 0)
    return count == 0 ? .empty : "<span class=\"count\">\(count)<span class=\"hidden\"> pending</span></span>"
  }

  private func current(_ other: Place) -> HTML { place == other ? " aria-current=\"page\"" : .empty }

  private var status: HTML {
    let (kind, text) = syncStatus
    return "<p id=\"status\" class=\"\(kind)\"><i></i><span>\(text)</span></p>"
  }

  private var syncStatus: (kind: String, text: HTML) {
    let (waiting, unreadable) = (sync.pending.total, sync.unreadableNodes)
    let changes = "\(waiting) \(waiting == 1 ? "change" : "changes")"
    if !sync.frozenZones.isEmpty {
      return (
        "failed",
        "Data of the server failed verification. Some lists are neither sent nor received\(sync.isOffline ? ", and you are offline" : HTML.empty). <code>zdc-todo repair</code> says what to do."
      )
    }
    if sync.isOffline { return ("offline", waiting == 0 ? "Offline" : "Offline, \(changes) not sent yet") }
    if !sync.stalledZones.isEmpty {
      return ("failed", "The server’s answers cannot be read. Some changes are not sent or received.")
    }
    if waiting > 0 { return ("busy", "Sending \(changes)") }
    if unreadable > 0 { return ("failed", "\(unreadable) \(unreadable == 1 ? "item" : "items") cannot be opened") }
    return ("idle", "Everything is in the cloud")
  }

  // MARK: Parts of other pages

  private static let shared: HTML =
    "<span class=\"shared\" title=\"shared\">\(Icon.people)<span class=\"hidden\">shared</span></span>"

  static func badges(_ badges: Set<Badge>) -> HTML {
    guard !badges.isEmpty else { return .empty }
    let texts: [Badge: String] = [
      .pending: "not sent yet", .syncing: "is being sent", .merged: "merged", .needsDownload: "downloading",
    ]
    let parts: [HTML] = badges.sorted { $0.rawValue < $1.rawValue }.map { badge in
      "<span class=\"badge \(badge.rawValue)\" title=\"\(texts[badge] ?? "")\"><span class=\"hidden\">\(texts[badge] ?? "")</span></span>"
    }
    return "<span class=\"badges\">\(parts)</span>"
  }

  static func ring(_ counts: List.Counts) -> HTML {
    let percent = counts.tasks == 0 ? 0 : counts.done * 100 / counts.tasks
    let circle = "M10 2a8 8 0 0 1 0 16a8 8 0 0 1 0-16"  // clockwise from the top
    return """
      <svg class="ring" viewBox="0 0 20 20" aria-hidden="true"><path class="track" d="\(circle)"/>\
      <path class="part" d="\(circle)" pathLength="100" stroke-dasharray="\(percent) 100"/></svg>
      """
  }

}
