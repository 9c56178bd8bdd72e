import Foundation
import Testing
import ZeroDarkCloud

/// The example of the article "Coming from ZeroDark.cloud", as an app would have it.
enum ComingFromZeroDarkArticle {
  struct Contact: ZDCRecord, Codable, Equatable {
    @Syncable var name = ""
    @Syncable var notes = ""
    var labels: ZDCSet<String> = []

    static var syncableFields: [ZDCField<Contact>] {
      [ZDCField("name", \._name), ZDCField("notes", \._notes), ZDCField("labels", \.labels)]
    }
  }

  final class Entry: Codable {
    var contact = Contact()
    /// Not merged.
    var openedAt = Date.now
  }
}

@Suite struct ComingFromZeroDarkArticleTests {
  typealias Article = ComingFromZeroDarkArticle

  /// => an edit of the record inside the class has a changeset that takes it back; all else of the class has none
  @Test func aClassMayHoldARecord() throws {
    let entry = Article.Entry()
    #expect(Article.Contact.unlistedFields(of: entry.contact) == [])
    entry.openedAt = .distantPast
    #expect(!entry.contact.hasChanges)
    entry.contact.name = "Ada"
    let changeset = try entry.contact.changeset() ?? [:]
    #expect(!changeset.isEmpty)
    _ = try entry.contact.undo(changeset)
    #expect(entry.contact.name == "" && entry.openedAt == .distantPast)
  }
}
