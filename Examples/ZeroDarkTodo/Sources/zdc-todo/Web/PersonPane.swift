import Foundation
import TodoKit
import ZeroDarkCloud

/// A person: their ID, safety number and name, and their access to a list.
struct PersonPane {
  let page: Page
  let person: Person
  /// A list of the user to which the person has access, or may get it.
  let list: ListItem?

  var html: HTML {
    guard person.identity != nil else { return Document.problem("This device does not know this person.") }
    return """
      <header>\(list.map { page.back(Place.sharing($0.id).path, "Share \($0.title.displayed)") } ?? page.back("", "Lists"))
      <h1 id="title"><bdi>\(person.label.displayed)</bdi></h1></header>
      <p class="id">\(Self.avatar(person))<code>\(person.id)</code></p>
      \(list.map(access))
      \(safetyNumber)
      \(page.form("/person/\(person.id)/name", class: "fields", """
        <label for="f-name">Name, only on this device</label>
        <input id="f-name" name="name" value="\(person.name ?? "")" maxlength="100" autocomplete="off"><button>Save</button>
        """))
      """
  }

  private func access(_ list: ListItem) -> HTML {
    let member = list.members.first { $0.id == person.id }
    let note =
      member == nil
      ? "They get an invitation, and see the list once they accept it." : "They have access to this list."
    return """
      <section class="access"><h2>Access to <bdi>\(list.title.displayed)</bdi></h2><p class="hint">\(note)</p>
      <div class="inline">\(grant(list, member))\(member.map { otherActions($0, list) })</div></section>
      """
  }

  private func grant(_ list: ListItem, _ member: Member?) -> HTML {
    let options: [HTML] = [("edit", "Can edit", true), ("read", "Can read", false)].map { value, text, canEdit in
      let isChosen = member.map { $0.canEdit == canEdit } ?? canEdit
      return "<option value=\"\(value)\"\(isChosen ? " selected" : HTML.empty)>\(text)</option>"
    }
    let (button, done) = member == nil ? ("Share the list", "The invitation is queued.") : ("Save", "Saved.")
    return page.form(
      "/list/\(list.id)/share/\(person.id)", class: "grant",
      """
      <label class="hidden" for="f-rights">What they may do</label><select id="f-rights" name="rights">\(options)</select>
      <button class="primary" data-done="\(done)">\(button)</button>
      """)
  }

  /// A member who is shared with again, without a change, gets another invitation.
  private func otherActions(_ member: Member, _ list: ListItem) -> HTML {
    let again = page.form(
      "/list/\(list.id)/share/\(member.id)",
      """
      <input type="hidden" name="rights" value="\(member.canEdit ? "edit" : "read")">
      <button data-done="The invitation is queued.">Invite again</button>
      """)
    let remove = page.form(
      "/list/\(list.id)/unshare/\(member.id)",
      "<button class=\"danger\" data-confirm=\"End their access to this list?\" data-done=\"Removed.\">Remove</button>")
    return "\(again)\(remove)"
  }

  private var safetyNumber: HTML {
    let groups: [HTML] = person.safetyNumber.map { "<li>\($0)</li>" }
    return """
      <section class="safety"><h2>Safety number</h2>\(Self.identity(person))
      <ol class="number" aria-label="Safety number">\(groups)</ol>
      <p class="hint">Compare it with the number that their page shows for you, on the phone or in person. If all digits are \
      equal, no attacker is between you.</p>\(decision)</section>
      """
  }

  private var decision: HTML {
    switch person.identity {
    case .seen: page.form("/person/\(person.id)/verify", "<button>The numbers are equal</button>")
    case .changed:
      """
      <p class="wrong" role="alert">This person has new words since you verified them. Compare the numbers and ask them.</p>
      \(page.form("/person/\(person.id)/accept", "<button>Accept the new words</button>"))
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
    return "<span class=\"identity \(kind)\">\(kind == "verified" ? Icon.check : .empty)\(text)</span>"
  }

  /// A circle with the first character of the name, in a colour that the ID determines.
  static func avatar(_ person: Person) -> HTML {
    let colour = person.id.utf8.reduce(0) { ($0 &* 31 &+ Int($1)) & 0xFFFF } % 6
    return
      "<span class=\"avatar c\(colour)\" aria-hidden=\"true\">\(person.initial)</span>"
  }

}
