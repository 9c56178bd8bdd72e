import Foundation
import TodoKit
import ZeroDarkCloud

// A single task.
extension Page {
  func taskPane(_ item: TaskItem) -> HTML? {
    guard let task = item.task else { return nil }
    return """
      <header>\(back("/list/\(task.listID)", list?.title.displayed ?? "List"))
      <h1 id="title"><bdi>\(task.title.displayed)</bdi></h1>\(Self.badges(item.badges))</header>
      \(fields(item.id, task))
      \(photo(item))
      \(canEdit ? moveToList(item.id, task) : .empty)
      <section class="facts"><h2>Behind the scenes</h2>
      <p>Created \(task.created.formatted(date: .long, time: .shortened)).</p>
      <p><a href="\(base)/sealed/\(item.id)">What the server sees</a> · \
      <a href="\(base)/explain/\(item.id)">Is it in the cloud?</a></p>
      \(canEdit ? deletion(item.id) : .empty)</section>
      """
  }

  /// A task that another device has deleted or moved, or whose content is not on this device.
  func noTask(_ id: String) -> HTML {
    if screen.tasks.contains(where: { $0.id == id }) {
      return Document.problem("This task is not downloaded yet, or cannot be read.")
    }
    guard let taskListID, taskListID != place.listID else { return Document.problem("This task was deleted.") }
    return """
      <section class="empty"><h1>This task is in another list</h1>
      <p><a href="\(base)\(Place.task(id, inList: taskListID).path)">Open it there</a></p></section>
      """
  }

  private var canEdit: Bool { list?.canEdit != false }

  private func deletion(_ id: String) -> HTML {
    form(
      "/task/\(id)/delete", live: false,
      "<button class=\"danger\" data-confirm=\"Delete this task and its photo, on all devices?\">Delete the task</button>"
    )
  }

  /// The hidden fields have the values that the form was made from. Only fields that differ from them are changed, so
  /// that an open form does not overwrite a later edit of another device.
  private func fields(_ id: String, _ task: Task) -> HTML {
    let title = task.title.filter { !$0.isNewline }  // browsers remove line ends from a single-line field
    return form(
      "/task/\(id)/edit", class: "fields",
      """
      <fieldset\(canEdit ? HTML.empty : " disabled")><legend class="hidden">The task</legend>
      <input type="hidden" name="old-title" value="\(title)"><input type="hidden" name="old-details" value="\(task.details)">
      <input type="hidden" name="old-priority" value="\(task.priority.rawValue)">
      <label for="f-title">Title</label><input id="f-title" name="title" value="\(title)" maxlength="1000" required>
      <label for="f-details">Details</label><textarea id="f-details" name="details" rows="4" maxlength="10000">
      \(task.details)</textarea>
      <label for="f-priority">Priority</label>\(prioritySelect(task.priority, id: "f-priority"))
      \(canEdit ? "<button class=\"primary\">Save</button>" : HTML.empty)</fieldset>
      """)
  }

  private func photo(_ item: TaskItem) -> HTML {
    let address = "\(base)/task/\(item.id)/photo"
    let picture: HTML? = item.photo.map { version in
      """
      <figure id="photo" data-photo="\(address)?v=\(version)" data-progress="\(address)/progress">
      <img data-version="\(version)" alt="Photo of \(item.task?.title.displayed ?? "this task")" src="\(base)/task/\(item.id)/thumbnail?v=\(version)">
      <progress data-version="\(version)" max="1" value="0" hidden aria-label="Download of the photo"></progress>
      <figcaption><button type="button" data-full>Show the full photo</button>
      \(canEdit ? form("/task/\(item.id)/photo/remove", Self.removePhoto) : .empty)</figcaption></figure>
      """
    }
    return """
      <section class="photo"><h2>Photo</h2>\(picture)\(canEdit ? upload(address, replaces: item.photo != nil) : noPhoto(item))</section>
      """
  }

  private static let removePhoto: HTML =
    "<button class=\"quiet\" data-confirm=\"Remove the photo, on all devices? It cannot be restored.\">Remove photo</button>"
  private static let replacePhoto: HTML =
    " data-confirm=\"Replace the photo, on all devices? It cannot be restored.\""

  private func upload(_ address: String, replaces: Bool) -> HTML {
    """
    <label class="file" for="f-photo">\(replaces ? "Replace the photo" : "Attach a photo")</label>
    <input id="f-photo" type="file" accept="image/jpeg,image/png,image/webp" data-upload="\(address)"\(replaces ? Self.replacePhoto : .empty)>
    """
  }

  private func noPhoto(_ item: TaskItem) -> HTML { item.photo == nil ? "<p class=\"hint\">None.</p>" : .empty }

  private func moveToList(_ id: String, _ task: Task) -> HTML {
    let others: [HTML] = screen.lists.filter { $0.id != task.listID }
      .map { "<option value=\"\($0.id)\">\($0.title.displayed)</option>" }
    guard !others.isEmpty else { return .empty }
    return form(
      "/task/\(id)/list", class: "inline", live: false,
      "<label for=\"f-list\">Move to</label><select id=\"f-list\" name=\"list\">\(others)</select><button>Move</button>"
    )
  }
}
