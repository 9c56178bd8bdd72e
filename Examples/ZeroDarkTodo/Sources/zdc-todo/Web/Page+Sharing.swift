import Foundation
import TodoKit
import ZeroDarkCloud

// The people with whom a list is shared.
extension Page {
  func sharingPane(_ list: ListItem) -> HTML {
    """
    <header>\(back("/list/\(list.id)", list.title.displayed))<h1 id="title">\(list.isOwn ? "Share" : "Members of") <bdi>\
    \(list.title.displayed)</bdi></h1></header>
    \(list.members.isEmpty ? "<p class=\"hint\">Only you can read this list.</p>" : HTML.empty)
    <ul id="members" class="people" aria-label="People with access">\(list.members.map { row($0, list) })</ul>
    \(list.isOwn ? invite(list) : leave(list))
    """
  }

  private func row(_ member: Member, _ list: ListItem) -> HTML {
    let role = member.isOwner ? "Owner" : member.canEdit ? "Can edit" : "Can read"
    let name: HTML = """
      \(Self.avatar(member.person))<span class="body"><span class="name"><bdi>\
      \(member.isUser ? "You" : member.person.label.displayed)</bdi></span>\(member.isUser ? .empty : Self.identity(member.person))</span>
      <span class="role">\(role)</span>
      """
    guard !member.isUser else { return "<li id=\"p-\(member.id)\"><span class=\"row\">\(name)</span></li>" }
    let place = list.isOwn ? Place.access(member.id, toList: list.id) : .person(member.id)
    return "<li id=\"p-\(member.id)\"><a class=\"row\" href=\"\(base)\(place.path)\">\(name)\(Self.chevron)</a></li>"
  }

  private func invite(_ list: ListItem) -> HTML {
    """
    <section class="add"><h2>Add a person</h2>
    \(form("/list/\(list.id)/share/find", class: "find", """
      <label class="hidden" for="f-user">The person's ID</label>
      <input id="f-user" name="user" placeholder="Their ID" maxlength="100" autocomplete="off" autocapitalize="none" \
      spellcheck="false" required data-go><button class="primary">Next</button>
      """))
    <p class="hint">Everyone finds their ID under “Invitations”. Ask for it over a channel that you trust.</p></section>
    """
  }

  private func leave(_ list: ListItem) -> HTML {
    form(
      "/list/\(list.id)/leave", class: "leave", live: false,
      """
      <button class="danger" data-confirm="Leave this list? It disappears from all of your devices.">Leave the list</button>
      """)
  }

  // MARK: A person

  /// - Parameter list: The user's list to which the person has access, or may get it.
  func personPane(_ person: Person, list: ListItem?) -> HTML {
    guard person.identity != nil else { return Self.problem("This device does not know this person.") }
    return """
      <header>\(list.map { back(Place.sharing($0.id).path, "Share \($0.title.displayed)") } ?? back("", "Lists"))
      <h1 id="title"><bdi>\(person.label.displayed)</bdi></h1></header>
      <p class="id">\(Self.avatar(person))<code>\(person.id)</code></p>
      \(list.map { access(person, $0) })
      \(safetyNumber(person))
      \(form("/person/\(person.id)/name", class: "fields", """
        <label for="f-name">Name, only on this device</label>
        <input id="f-name" name="name" value="\(person.name ?? "")" maxlength="100" autocomplete="off"><button>Save</button>
        """))
      """
  }

  private func access(_ person: Person, _ list: ListItem) -> HTML {
    let member = list.members.first { $0.id == person.id }
    let note =
      member == nil
      ? "They get an invitation, and the list as soon as they accept it." : "They have access to this list."
    return """
      <section class="access"><h2>Access to <bdi>\(list.title.displayed)</bdi></h2><p class="hint">\(note)</p>
      <div class="inline">\(grant(person, list, member))\(member.map { otherActions($0, list) })</div></section>
      """
  }

  private func grant(_ person: Person, _ list: ListItem, _ member: Member?) -> HTML {
    let options: [HTML] = [("edit", "Can edit", true), ("read", "Can read", false)].map { value, text, canEdit in
      let isChosen = member.map { $0.canEdit == canEdit } ?? canEdit
      return "<option value=\"\(value)\"\(isChosen ? " selected" : HTML.empty)>\(text)</option>"
    }
    let (button, done) = member == nil ? ("Share the list", "The invitation is queued.") : ("Save", "Saved.")
    return form(
      "/list/\(list.id)/share/\(person.id)", class: "grant",
      """
      <label class="hidden" for="f-rights">What they may do</label><select id="f-rights" name="rights">\(options)</select>
      <button class="primary" data-done="\(done)">\(button)</button>
      """)
  }

  /// A member who is shared with again, without a change, gets another invitation.
  private func otherActions(_ member: Member, _ list: ListItem) -> HTML {
    let again = form(
      "/list/\(list.id)/share/\(member.id)",
      """
      <input type="hidden" name="rights" value="\(member.canEdit ? "edit" : "read")">
      <button data-done="The invitation is queued.">Invite again</button>
      """)
    let remove = form(
      "/list/\(list.id)/unshare/\(member.id)",
      "<button class=\"danger\" data-confirm=\"End their access to this list?\" data-done=\"Removed.\">Remove</button>")
    return "\(again)\(remove)"
  }

  private func safetyNumber(_ person: Person) -> HTML {
    let groups: [HTML] = person.safetyNumber.map { "<li>\($0)</li>" }
    return """
      <section class="safety"><h2>Safety number</h2>\(Self.identity(person))
      <ol class="number" aria-label="Safety number">\(groups)</ol>
      <p class="hint">Compare it with the number on their page for you, over the phone or face to face. If all digits are equal, \
      no one stands between you.</p>\(decision(person))</section>
      """
  }

  private func decision(_ person: Person) -> HTML {
    switch person.identity {
    case .seen: form("/person/\(person.id)/verify", "<button>The numbers are equal</button>")
    case .changed:
      """
      <p class="wrong" role="alert">This person has new words since you verified them. Compare the numbers and ask them.</p>
      \(form("/person/\(person.id)/accept", "<button>Accept the new words</button>"))
      """
    case .verified, .closed, nil: .empty
    }
  }

  // MARK: Parts

  static func identity(_ person: Person) -> HTML {
    let (kind, text) =
      switch person.identity {
      case .verified: ("verified", "Verified")
      case .changed: ("changed", "Has new words: compare again")
      case .closed: ("closed", "Has closed the account")
      case .seen, nil: ("seen", "Not verified")
      }
    return "<span class=\"identity \(kind)\">\(kind == "verified" ? check : .empty)\(text)</span>"
  }

  /// A circle with the first character of the name, in a colour that the ID determines.
  static func avatar(_ person: Person) -> HTML {
    let colour = person.id.utf8.reduce(0) { ($0 &* 31 &+ Int($1)) & 0xFFFF } % 6
    return
      "<span class=\"avatar c\(colour)\" aria-hidden=\"true\">\(String(person.label.displayed.prefix(1)).uppercased())</span>"
  }

  private static let chevron: HTML = """
    <svg viewBox="0 0 20 20" class="icon chevron" aria-hidden="true"><path d="M8 4l6 6-6 6"/></svg>
    """
  private static let check: HTML = """
    <svg viewBox="0 0 20 20" class="icon" aria-hidden="true"><path d="M4 10.500l4 4 8-9"/></svg>
    """
  static let people: HTML = """
    <svg viewBox="0 0 20 20" class="icon" aria-hidden="true"><circle cx="8" cy="7" r="3"/>\
    <path d="M2.500 16.500c.5-3.500 2.500-4.500 5.500-4.500s5 1 5.500 4.500M13 4.300a3 3 0 0 1 0 5.400M15 12.300c1.500.7 2.300 2 2.500 4.200"/></svg>
    """
  static let envelope: HTML = """
    <svg viewBox="0 0 20 20" class="icon" aria-hidden="true"><rect x="2.500" y="4.500" width="15" height="11" rx="2"/>\
    <path d="M3 6l7 5 7-5"/></svg>
    """
}
