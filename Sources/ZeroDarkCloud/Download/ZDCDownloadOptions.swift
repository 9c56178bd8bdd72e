internal import Synchronization

/// The parts of a node's content that can be downloaded without its data (seed 001).
public struct ZDCNodeMetaComponents: OptionSet, Sendable, Hashable {
  public let rawValue: Int

  public init(rawValue: Int) {
    self.rawValue = rawValue
  }

  public static let header = ZDCNodeMetaComponents(rawValue: 1)
  public static let metadata = ZDCNodeMetaComponents(rawValue: 2)
  public static let thumbnail = ZDCNodeMetaComponents(rawValue: 4)
  public static let all: ZDCNodeMetaComponents = [.header, .metadata, .thumbnail]
}

/// How a download goes and what becomes of its result (seeds 001, 002).
///
/// Read once, when the download is asked for; later changes have no effect on it.
public final class ZDCDownloadOptions: Sendable {
  private struct Values {
    var cacheToDiskManager = false
    var savePersistentlyToDiskManager = false
    var canDownloadWhileInBackground = false
    var completionTag: String?
  }

  private let values = Mutex(Values())

  var isKept: Bool { cacheToDiskManager || savePersistentlyToDiskManager }

  public init() {}

  /// Whether the disk manager keeps the result in its cache. Without it the file belongs to the caller, who deletes it.
  public var cacheToDiskManager: Bool {
    get { values.withLock { $0.cacheToDiskManager } }
    set { values.withLock { $0.cacheToDiskManager = newValue } }
  }

  /// Whether the disk manager keeps the file until it is deleted, outside of its cache.
  public var savePersistentlyToDiskManager: Bool {
    get { values.withLock { $0.savePersistentlyToDiskManager } }
    set { values.withLock { $0.savePersistentlyToDiskManager = newValue } }
  }

  /// Whether the system goes on with the download while the app is in the background, where there is such a thing.
  public var canDownloadWhileInBackground: Bool {
    get { values.withLock { $0.canDownloadWhileInBackground } }
    set { values.withLock { $0.canDownloadWhileInBackground = newValue } }
  }

  /// Of all downloads of one node under the same tag only the first one's completion is called.
  public var completionTag: String? {
    get { values.withLock { $0.completionTag } }
    set { values.withLock { $0.completionTag = newValue } }
  }

  /// Another name of ``completionTag``.
  public var completionConsolidationTag: String? {
    get { completionTag }
    set { completionTag = newValue }
  }
}
