import Foundation
import Synchronization
import ZeroDarkCloud

// Types and helpers of an app that the original documentation takes for granted.

/// The original's records were objects; ours are values. A record is read from the database, changed, and stored again.
struct Task: ZDCRecord, Codable, Equatable {
  var uuid: String = UUID().uuidString
  @Syncable var title: String = ""

  static var syncableFields: [ZDCField<Task>] { [ZDCField("title", \._title)] }
}

struct List: Codable, Sendable, Equatable {
  var uuid: String = UUID().uuidString
  var title: String = ""

  func serializeAsJSON() throws -> Data { try JSONEncoder().encode(self) }
}

/// A type from document 001. Serializing it cannot fail.
struct MyObject: Sendable {
  func serializeAsJSON() -> Data { Data("{}".utf8) }
}

let kCollection_Tasks = "tasks"
let kCollection_Lists = "lists"

struct TextView {
  var text = ""
}

func someSlowTask() -> Data { Data("slow".utf8) }

#if !canImport(UIKit)
  /// The platform's image type, as the framework defines it.
  typealias UIImage = ZDCPlatformImage
#endif

/// A cell of a list.
final class Cell: Sendable {
  /// The seeds' image view.
  final class Thumbnail: Sendable {
    private let shown = Mutex<[UIImage?]>([])

    var image: UIImage? {
      get { shown.withLock { $0.last ?? nil } }
      set { shown.withLock { $0.append(newValue) } }
    }

    /// All images that were shown, in order.
    var images: [UIImage?] { shown.withLock { $0 } }
  }

  let taskID: String
  let thumbnail = Thumbnail()

  init(taskID: String) { self.taskID = taskID }
}
