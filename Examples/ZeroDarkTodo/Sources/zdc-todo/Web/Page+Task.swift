import Foundation
import TodoKit
import ZeroDarkCloud

// A single task, and the activity.
extension Page {
  func taskPane(_ item: TaskItem) -> HTML? {
    guard let task = item.task else { return nil }
    return """
      <header>\(back("/list/\(task.listID)", list?.title.displayed ?? "List"))
      <h1 id="title"><bdi>\(task.title.displayed)</bdi></h1>\(Self.badges(item.badges))</header>
      \(fields(item.id, task))
      \(photo(item))
      \(moveToList(item.id, task))
      <section class="facts"><h2>Behind the scenes</h2>
      <p>Created \(task.created.formatted(date: .long, time: .shortened)).</p>
      <p><a href="\(base)/sealed/\(item.id)">What the server sees</a> · \
      <a href="\(base)/explain/\(item.id)">Is it in the cloud?</a></p>
      \(form("/task/\(item.id)/delete", live: false, """
        <button class="danger" data-confirm="Delete this task and its photo, on all devices?">Delete the task</button>
        """))</section>
      """
  }

  private func fields(_ id: String, _ task: Task) -> HTML {
    form(
      "/task/\(id)/edit", class: "fields",
      """
      <label for="f-title">Title</label><input id="f-title" name="title" value="\(task.title)" maxlength="1000" required>
      <label for="f-details">Details</label><textarea id="f-details" name="details" rows="4" maxlength="10000">\(task.details)</textarea>
      <label for="f-priority">Priority</label>\(prioritySelect(task.priority, id: "f-priority"))
      <button class="primary">Save</button>
      """)
  }

  private func photo(_ item: TaskItem) -> HTML {
    let address = "\(base)/task/\(item.id)/photo"
    let picture: HTML? = item.photo.map { version in
      """
      <figure id="photo" data-photo="\(address)?v=\(version)" data-progress="\(address)/progress">
      <img alt="Photo of \(item.task?.title.displayed ?? "this task")" src="\(base)/task/\(item.id)/thumbnail?v=\(version)">
      <progress max="1" value="0" hidden aria-label="Download of the photo"></progress>
      <figcaption><button type="button" data-full>Show the full photo</button>
      \(form("/task/\(item.id)/photo/remove", "<button class=\"quiet\">Take it off</button>"))</figcaption></figure>
      """
    }
    return """
      <section class="photo"><h2>Photo</h2>\(picture)
      <label class="file" for="f-photo">\(item.photo == nil ? "Attach a photo" : "Replace the photo")</label>
      <input id="f-photo" type="file" accept="image/jpeg,image/png,image/webp" data-upload="\(address)"></section>
      """
  }

  private func moveToList(_ id: String, _ task: Task) -> HTML {
    let others: [HTML] = screen.lists.filter { $0.id != task.listID }
      .map { "<option value=\"\($0.id)\">\($0.title.displayed)</option>" }
    guard !others.isEmpty else { return .empty }
    return form(
      "/task/\(id)/list", class: "inline", live: false,
      "<label for=\"f-list\">Move to</label><select id=\"f-list\" name=\"list\">\(others)</select><button>Move</button>"
    )
  }

  var activityPane: HTML {
    let rows: [HTML] = screen.activity.map { entry in
      """
      <li id="a-\(entry.id)"><div><strong><bdi>\(entry.title.displayed)</bdi></strong> <span>\(entry.change)</span>
      <time datetime="\(entry.date.formatted(.iso8601))">\(entry.date.formatted(date: .abbreviated, time: .shortened))</time></div>
      \(entry.isUndone ? "<span class=\"undone\">Undone</span>" : HTML.empty)\(undo(entry))</li>
      """
    }
    return """
      <header>\(back("/", "Lists"))<h1 id="title">Activity</h1></header>
      \(rows.isEmpty ? "<p class=\"hint\">Edits of this device, and what became of conflicts, will be here.</p>" : HTML.empty)
      <ul id="activity">\(rows)</ul>
      """
  }

  private func undo(_ entry: Activity) -> HTML {
    let isMerge = entry.change.hasPrefix("merged")
    guard entry.canUndo else {
      guard isMerge, !entry.isUndone, let task = entry.taskID else { return .empty }
      return dismiss(task)
    }
    let button = form(
      "/undo",
      "<input type=\"hidden\" name=\"id\" value=\"\(entry.id)\"><button>\(entry.isUndone ? "Redo" : "Undo")</button>")
    return isMerge ? "\(button)\(entry.taskID.map(dismiss))" : button
  }

  private func dismiss(_ task: String) -> HTML {
    form("/dismiss", "<input type=\"hidden\" name=\"task\" value=\"\(task)\"><button class=\"quiet\">Keep</button>")
  }
}
