import Foundation
import TodoKit
import ZeroDarkCloud

/// The people with whom a list is shared.
struct SharingPane {
  let page: Page
  let list: ListItem

  var html: HTML {
    """
    <header>\(page.back("/list/\(list.id)", list.title.displayed))<h1 id="title">\(list.isOwn ? "Share" : "Members of") <bdi>\
    \(list.title.displayed)</bdi></h1></header>
    \(list.members.isEmpty ? "<p class=\"hint\">Only you can read this list.</p>" : HTML.empty)
    <ul id="members" class="people" aria-label="People with access">\(list.members.map(row))</ul>
    \(list.isOwn ? invite : page.leaving(list))
    """
  }

  private func row(_ member: Member) -> HTML {
    let role = member.isOwner ? "Owner" : member.canEdit ? "Can edit" : "Can read"
    let name: HTML = """
      \(PersonPane.avatar(member.person))<span class="body"><span class="name"><bdi>\
      \(member.isUser ? "You" : member.person.label.displayed)</bdi></span>\(member.isUser ? .empty : PersonPane.identity(member.person))</span>
      <span class="role">\(role)</span>
      """
    guard !member.isUser else { return "<li id=\"p-\(member.id)\"><span class=\"row\">\(name)</span></li>" }
    let place = list.isOwn ? Place.access(member.id, toList: list.id) : .person(member.id)
    return
      "<li id=\"p-\(member.id)\"><a class=\"row\" href=\"\(page.base)\(place.path)\">\(name)\(Icon.chevron)</a></li>"
  }

  private var invite: HTML {
    """
    <section class="add"><h2>Add a person</h2>
    \(page.form("/list/\(list.id)/share/find", class: "find", """
      <label class="hidden" for="f-user">The person's ID or handle</label>
      <input id="f-user" name="user" placeholder="@handle, or their ID" maxlength="100" autocomplete="off" autocapitalize="none" \
      spellcheck="false" required data-go><button class="primary">Next</button>
      """))
    <p class="hint">Their app shows both under “Invitations”. Ask for one over a channel that you trust.</p></section>
    """
  }
}
