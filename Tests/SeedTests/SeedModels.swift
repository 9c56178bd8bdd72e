import Foundation
import Synchronization
import ZeroDarkCloud

// What the seed documents take for granted: an app's own types and helpers.

/// The original's records were objects, ours are values: a record is taken out of the database, changed, and put back.
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

/// Of seed 001: cannot fail.
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
  /// The platform's image, as the framework has it.
  typealias UIImage = ZDCPlatformImage
#endif

/// A cell of a list.
final class Cell: Sendable {
  /// What the seeds take for an image view.
  final class Thumbnail: Sendable {
    private let shown = Mutex<[UIImage?]>([])

    var image: UIImage? {
      get { shown.withLock { $0.last ?? nil } }
      set { shown.withLock { $0.append(newValue) } }
    }

    /// All that was shown, in order.
    var images: [UIImage?] { shown.withLock { $0 } }
  }

  let taskID: String
  let thumbnail = Thumbnail()

  init(taskID: String) { self.taskID = taskID }
}
