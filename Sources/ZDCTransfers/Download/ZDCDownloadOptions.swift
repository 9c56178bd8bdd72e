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
  package struct Values: Sendable, Hashable {
    package var cacheToDiskManager = false
    package var savePersistentlyToDiskManager = false
    package var canDownloadWhileInBackground = false
    package var completionTag: String?
  }

  private let storage = Mutex(Values())

  public init() {}

  package var values: Values { storage.withLock { $0 } }

  /// Whether the disk manager keeps the result. Without it a file belongs to the caller, who deletes it.
  public var cacheToDiskManager: Bool {
    get { values.cacheToDiskManager }
    set { storage.withLock { $0.cacheToDiskManager = newValue } }
  }

  /// Whether the disk manager keeps the result until the app deletes it.
  public var savePersistentlyToDiskManager: Bool {
    get { values.savePersistentlyToDiskManager }
    set { storage.withLock { $0.savePersistentlyToDiskManager = newValue } }
  }

  /// Whether the download is to go on when the app is in the background, or has ended before it was done.
  ///
  /// A download that outlives the app ends in the delegate's `didBackgroundDownload…` at a later launch. Not where
  /// another process of the app still waits for it.
  public var canDownloadWhileInBackground: Bool {
    get { values.canDownloadWhileInBackground }
    set { storage.withLock { $0.canDownloadWhileInBackground = newValue } }
  }

  /// Of all downloads of the same under the same tag only one completion is called: that of the first who still wants
  /// it.
  public var completionConsolidationTag: String? {
    get { values.completionTag }
    set { storage.withLock { $0.completionTag = newValue } }
  }

  /// The seeds' name of ``completionConsolidationTag``.
  public var completionTag: String? {
    get { completionConsolidationTag }
    set { completionConsolidationTag = newValue }
  }
}

extension ZDCDownloadOptions.Values {
  package var isKept: Bool { cacheToDiskManager || savePersistentlyToDiskManager }

  /// What metadata and thumbnails are downloaded with if the caller says nothing.
  static let metaDefault = ZDCDownloadOptions.Values(cacheToDiskManager: true)
}
