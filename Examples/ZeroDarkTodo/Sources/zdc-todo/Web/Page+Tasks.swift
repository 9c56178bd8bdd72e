import Foundation
import TodoKit
import ZeroDarkCloud

// The tasks of a list.
extension Page {
  func listPane(_ list: ListItem) -> HTML {
    let open = screen.tasks.filter { $0.task?.isDone != true }
    let done = screen.tasks.filter { $0.task?.isDone == true }
    return """
      <header>\(back("/", "Lists"))
      <h1 id="title"><bdi>\(list.title.displayed)</bdi></h1><div class="tools">\(shareLink(list))\(listMenu(list))</div></header>
      \(list.canEdit ? newTask(list) : list.isArriving ? .empty : Self.readOnly)
      <ul id="open" class="tasks" aria-label="Open tasks">\(open.map { row($0, list) })</ul>
      \(screen.tasks.isEmpty ? list.isArriving ? Self.arriving : Self.noTasks : .empty)
      \(done.isEmpty ? .empty : completed(done, list))
      """
  }

  private static let readOnly: HTML =
    "<p class=\"hint\">You can read this list, but not change it. Its owner can let you edit it.</p>"
  private static let noTasks: HTML = "<p class=\"hint\">Nothing to do yet.</p>"
  private static let downloading: HTML =
    "<span class=\"body skeleton\"><span class=\"hidden\">A task is being downloaded</span></span>"
  private static let unreadable: HTML = "<span class=\"body hint\">This task cannot be read.</span>"
  private static let arriving: HTML =
    "<p class=\"hint\">You have accepted this list. Its tasks appear as soon as they are received.</p>"

  private func completed(_ items: [TaskItem], _ list: ListItem) -> HTML {
    """
    <details id="completed"\(items.count < 20 ? " open" : HTML.empty)><summary>Completed <span class="count">\(items.count)</span></summary>
    <ul id="done" class="tasks" aria-label="Completed tasks">\(items.map { row($0, list) })</ul></details>
    """
  }

  func back(_ path: String, _ text: String) -> HTML { Self.backLink(base + path, text) }

  static func backLink(_ address: String, _ text: String) -> HTML {
    """
    <a class="back" href="\(address)"><svg viewBox="0 0 20 20" class="icon" aria-hidden="true">\
    <path d="M12 4l-6 6 6 6"/></svg>\(text)</a>
    """
  }

  private func shareLink(_ list: ListItem) -> HTML {
    let others = list.members.count - 1
    let text: HTML = others > 0 ? "<span class=\"count\">\(list.members.count)</span>" : "Share"
    let label = others > 0 ? "Shared with \(others) \(others == 1 ? "person" : "people")" : "Share this list"
    return
      "<a id=\"to-sharing\" href=\"\(base)/list/\(list.id)/share\" aria-label=\"\(label)\">\(Icon.people)\(text)</a>"
  }

  private func listMenu(_ list: ListItem) -> HTML {
    """
    <details id="list-menu" class="menu"><summary aria-label="Change this list">\
    <svg viewBox="0 0 20 20" class="icon dots" aria-hidden="true"><circle cx="4" cy="10" r="1.5"/>\
    <circle cx="10" cy="10" r="1.5"/><circle cx="16" cy="10" r="1.5"/></svg></summary><div class="sheet">
    \(form("/list/\(list.id)/rename", class: "rename", """
      <label for="rename">Title</label><input id="rename" name="title" value="\(list.title)" maxlength="200" required>
      <button>Rename</button>
      """))
    \(list.isArriving ? .empty : "<a class=\"item\" href=\"\(base)/sealed/\(list.id)\">\(Icon.lock)What the server sees</a>")
    \(list.isOwn ? deletion(list) : leaving(list, icon: Icon.leave))</div></details>
    """
  }

  private func deletion(_ list: ListItem) -> HTML {
    let place: HTML = list.members.isEmpty ? "on all devices" : "for all of its members"
    return form(
      "/list/\(list.id)/delete", live: false,
      """
      <button class="danger" data-confirm="Delete this list with \(list.counts.tasks) tasks and their photos, \(place)?">\
      \(Icon.trash)Delete the list</button>
      """)
  }

  func leaving(_ list: ListItem, icon: HTML = .empty) -> HTML {
    form(
      "/list/\(list.id)/leave", class: "leave", live: false,
      """
      <button class="danger" data-confirm="Leave this list? It disappears from all of your devices.">\(icon)Leave the list</button>
      """)
  }

  private func newTask(_ list: ListItem) -> HTML {
    form(
      "/list/\(list.id)/tasks", class: "new-task",
      """
      <span class="round" aria-hidden="true">\(Icon.plus)</span>
      <label class="hidden" for="new-task">New task</label>
      <input id="new-task" name="title" placeholder="New task" maxlength="1000" autocomplete="off" required data-clear>
      <label class="hidden" for="new-priority">Priority</label>
      \(prioritySelect(.normal, id: "new-priority"))<button>Add</button>
      """)
  }

  func prioritySelect(_ chosen: Priority, id: String) -> HTML {
    let options: [HTML] = [Priority.high, .normal, .low].map { priority in
      "<option value=\"\(priority.rawValue)\"\(priority == chosen ? " selected" : HTML.empty)>\(priority.rawValue.capitalized)</option>"
    }
    return "<select id=\"\(id)\" name=\"priority\">\(options)</select>"
  }

  private func row(_ item: TaskItem, _ list: ListItem) -> HTML {
    guard let task = item.task else {
      return """
        <li id="t-\(item.id)" class="task"><span class="check skeleton"></span>\
        \(item.badges.contains(.needsDownload) ? Self.downloading : Self.unreadable)</li>
        """
    }
    let title = task.title.displayed
    let element: HTML = """
      <li id="t-\(item.id)" class="task \(task.priority.rawValue)\(task.isDone ? " is-done" : "")" data-task="\(item.id)" \
      \(task.isDone || !list.canEdit ? HTML.empty : "draggable=\"true\"")>\
      \(form("/task/\(item.id)/done", class: "check", """
        <input type="checkbox" name="done" value="1" id="c-\(item.id)" aria-label="\(title)"\(task.isDone ? " checked" : HTML.empty)\(list.canEdit ? HTML.empty : " disabled") data-submit>
        """))\
      <a class="body" id="b-\(item.id)" href="\(base)/list/\(list.id)/\(item.id)"><bdi class="name">\(title)</bdi>\
      \(task.details.isEmpty ? HTML.empty : "<bdi class=\"details\">\(task.details.displayed)</bdi>")</a>\
      \(priorityMark(task.priority))\(Self.badges(item.badges))\(item.photo.map { thumbnail(item.id, $0) })\(task.isDone || !list.canEdit ? HTML.empty : handle(item.id, title))</li>
      """
    return HTML(row: "t-\(item.id)", element)
  }

  private func priorityMark(_ priority: Priority) -> HTML {
    switch priority {
    case .high: "<span class=\"mark high\" title=\"High priority\"><span class=\"hidden\">High priority</span></span>"
    case .low: "<span class=\"mark low\">Low<span class=\"hidden\"> priority</span></span>"
    case .normal: .empty
    }
  }

  private func thumbnail(_ id: String, _ version: String) -> HTML {
    "<img class=\"thumb\" width=\"40\" height=\"40\" alt=\"\" loading=\"lazy\" src=\"\(base)/task/\(id)/thumbnail?v=\(version)\">"
  }

  /// It has an id, so that the script finds it again when a badge in front of it comes or goes: it may have the focus.
  private func handle(_ id: String, _ title: String) -> HTML {
    "<button type=\"button\" class=\"handle\" id=\"h-\(id)\" aria-label=\"Move \(title): arrow up or down\"></button>"
  }
}
