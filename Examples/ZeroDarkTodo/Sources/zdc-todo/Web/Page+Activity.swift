import Foundation
import TodoKit
import ZeroDarkCloud

// The activity, by days.
extension Page {
  var activityPane: HTML {
    let days = Dictionary(grouping: screen.activity) { Calendar.current.startOfDay(for: $0.date) }
    let sections: [HTML] = days.sorted { $0.key > $1.key }.map { day, entries in
      "<section><h2>\(name(of: day))</h2><ul>\(entries.map(row))</ul></section>"
    }
    return """
      <header>\(back("/", "Lists"))<h1 id="title">Activity</h1></header>
      \(sections.isEmpty ? Self.noActivity : HTML.empty)<div id="activity">\(sections)</div>
      """
  }

  private static let noActivity: HTML = """
    <p class="hint">Changes of this device, outcomes of conflicts, and lists that others have ended will appear here.</p>
    """

  private func name(of day: Date) -> String {
    if Calendar.current.isDateInToday(day) { return "Today" }
    if Calendar.current.isDateInYesterday(day) { return "Yesterday" }
    return day.formatted(date: .long, time: .omitted)
  }

  private func row(_ entry: Activity) -> HTML {
    """
    <li id="a-\(entry.id)" class="\(entry.kind.rawValue)\(entry.isUndone ? " is-undone" : "")">\(icon(entry))
    <div><strong><bdi>\(entry.title.displayed)</bdi></strong><p class="change">\(entry.change) <span class="when">· \(time(entry.date))</span></p></div>
    \(entry.isUndone ? "<span class=\"undone\">Undone</span>" : HTML.empty)\(undo(entry))</li>
    """
  }

  private func time(_ date: Date) -> HTML {
    "<time datetime=\"\(date.formatted(.iso8601))\">\(date.formatted(date: .omitted, time: .shortened))</time>"
  }

  private func icon(_ entry: Activity) -> HTML {
    switch entry.kind {
    case .notice: Icon.people
    case .conflict, .loss: Icon.merge
    case .edit where entry.change.hasPrefix("deleted"): Icon.trash
    case .edit where entry.change == "completed": Icon.check
    case .edit where ["added", "created"].contains(entry.change): Icon.plus
    case .edit: Icon.pencil
    }
  }

  private func undo(_ entry: Activity) -> HTML {
    let keep = entry.kind == .loss && !entry.isUndone ? entry.taskID.map(dismiss) : nil
    guard entry.canUndo else { return keep ?? .empty }
    let button = form(
      "/undo",
      "<input type=\"hidden\" name=\"id\" value=\"\(entry.id)\"><button>\(entry.isUndone ? "Redo" : "Undo")</button>")
    return "\(button)\(keep)"
  }

  private func dismiss(_ task: String) -> HTML {
    form("/dismiss", "<input type=\"hidden\" name=\"task\" value=\"\(task)\"><button class=\"quiet\">Keep</button>")
  }
}
