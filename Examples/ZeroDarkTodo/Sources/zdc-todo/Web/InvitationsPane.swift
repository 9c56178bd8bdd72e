import Foundation
import TodoKit
import ZeroDarkCloud

/// Invitations, people who are unknown, and the user's own ID and handle.
struct InvitationsPane {
  let page: Page

  var html: HTML {
    """
    <header>\(page.back("", "Lists"))<h1 id="title">Invitations</h1></header>
    \(page.screen.invitations.isEmpty ? "<p class=\"hint\">Lists that others share with you will appear here.</p>" : HTML.empty)
    <ul id="invitations" class="cards">\(page.screen.invitations.map(card))</ul>
    \(senders)
    <section class="own-id"><h2>Your ID</h2>
    <p class="hint">Others need it to share a list with you. It is not secret.</p>
    <div class="copy"><code id="own-id">\(page.user)</code><button type="button" data-copy="own-id">Copy</button></div></section>
    <section class="own-id"><h2>Your handle</h2>
    <p class="hint">A short name by which others can find you instead. Everyone on this server can see it.</p>
    \(page.form("/handle", class: "find", """
      <label class="hidden" for="own-handle">Your handle</label><input id="own-handle" name="handle" value="\(ownHandle)" \
      placeholder="@handle" maxlength="33" autocomplete="off" autocapitalize="none" spellcheck="false">\
      <button data-done="Saved.">Save</button>
      """))</section>
    """
  }

  private var ownHandle: String { page.person?.handle.map { "@\($0)" } ?? "" }

  private func card(_ invitation: InvitationItem) -> HTML {
    """
    <li id="i-\(invitation.id)">\(PersonPane.avatar(invitation.sender))<div class="body"><strong class="name"><bdi>\
    \(invitation.title.displayed)</bdi></strong><span class="details">from <a href="\(page.base)/person/\(invitation.sender.id)"><bdi>\
    \(invitation.sender.label.displayed)</bdi></a> · \(PersonPane.identity(invitation.sender))</span></div>
    <div class="answers">\(page.form("/invitations/\(invitation.id)/accept", """
      <button class="primary" data-go aria-label="Accept \(invitation.title.displayed)">Accept</button>
      """))\(page.form("/invitations/\(invitation.id)/decline", """
      <button aria-label="Decline \(invitation.title.displayed)">Decline</button>
      """))</div></li>
    """
  }

  /// Nothing that the people have sent is shown: it has not been downloaded.
  private var senders: HTML {
    guard let senders = page.senders else {
      return "<p class=\"hint\">Messages from unknown people are not shown while the server cannot be reached.</p>"
    }
    let (unknown, compromised) = (senders.filter { $0.person == nil }, senders.filter { $0.person != nil })
    return """
      \(list(unknown, id: "senders", title: "People you do not know", """
        Anyone who has your ID can write to you. Accept only people whom you expect, after you have compared their ID.
        """))\(list(compromised, id: "compromised", title: "Possibly forged", """
        These people have declared the key compromised that signed these messages. Anyone who has the key may have written \
        them. Ask the person before you accept.
        """))
      """
  }

  private func list(_ senders: [UnknownSender], id: String, title: String, _ hint: String) -> HTML {
    guard !senders.isEmpty else { return .empty }
    return """
      <section class="unknown"><h2>\(title)</h2><p class="hint">\(hint)</p>
      <ul id="\(id)" class="cards">\(senders.map(card))</ul></section>
      """
  }

  private func card(_ sender: UnknownSender) -> HTML {
    let id = sender.person?.label.displayed ?? String(sender.id.prefix(8))
    let name: HTML =
      sender.person == nil
      ? "<code class=\"name\">\(sender.id)</code>"
      : "<a class=\"name\" href=\"\(page.base)/person/\(sender.id)\"><bdi>\(id)</bdi></a>"
    // Messages that may be forged are not the ones to accept at once.
    let accepting: HTML = sender.person == nil ? " class=\"primary\"" : .empty
    return """
      <li id="s-\(sender.id)"><div class="body">\(name)<span class="details">\(sender.messages) \
      \(sender.messages == 1 ? "message" : "messages"), \(sender.date.formatted(date: .abbreviated, time: .shortened))</span></div>
      <div class="answers">\(page.form("/senders/\(sender.id)/accept", live: false, """
        <button\(accepting) aria-label="Accept messages from \(id)">Accept</button>
        """))\(page.form("/senders/\(sender.id)/decline", live: false, """
        <button aria-label="Delete the messages from \(id)">Delete</button>
        """))\(page.form("/senders/\(sender.id)/block", live: false, """
        <button class="danger" aria-label="Block \(id)" data-confirm="Refuse all messages from this person?">Block</button>
        """))</div></li>
      """
  }
}
