internal import Synchronization

/// The parts of a node's content that can be downloaded without its data.
///
/// ```swift
/// let (info, metadata, _) = try await session.downloadManager.downloadNodeMeta(node, components: .metadata)
/// ```
public struct ZDCNodeMetaComponents: OptionSet, Sendable, Hashable {
  /// The set as bits.
  public let rawValue: Int

  /// Creates a set from bits. Apps use the named components.
  public init(rawValue: Int) {
    self.rawValue = rawValue
  }

  /// The sizes and dates of the content; part of every result.
  public static let header = ZDCNodeMetaComponents(rawValue: 1)
  /// The metadata section that the app stored with the content.
  public static let metadata = ZDCNodeMetaComponents(rawValue: 2)
  /// The thumbnail section.
  public static let thumbnail = ZDCNodeMetaComponents(rawValue: 4)
  /// All three parts.
  public static let all: ZDCNodeMetaComponents = [.header, .metadata, .thumbnail]
}

/// Options for a download and for keeping its result.
///
/// Read once, when the download is requested; later changes have no effect on it.
///
/// ```swift
/// let options = ZDCDownloadOptions()
/// options.cacheToDiskManager = true  // the file is the disk manager's: do not delete it
/// options.canDownloadWhileInBackground = true
/// let (_, file) = try await session.downloadManager.downloadNodeData(node, options: options)
/// ```
public final class ZDCDownloadOptions: Sendable {
  package struct Values: Sendable, Hashable {
    package var cacheToDiskManager = false
    package var savePersistentlyToDiskManager = false
    package var canDownloadWhileInBackground = false
    package var completionTag: String?
  }

  private let storage = Mutex(Values())

  /// Creates options with which the result is not kept.
  public init() {}

  package var values: Values { storage.withLock { $0 } }

  /// Whether the disk manager keeps the result. Otherwise the file belongs to the caller, who deletes it.
  ///
  /// ```swift
  /// let options = ZDCDownloadOptions()
  /// options.cacheToDiskManager = true
  /// _ = try await session.downloadManager.downloadNodeData(node, options: options)
  /// ```
  public var cacheToDiskManager: Bool {
    get { values.cacheToDiskManager }
    set { storage.withLock { $0.cacheToDiskManager = newValue } }
  }

  /// Whether the disk manager keeps the result until the app deletes it.
  ///
  /// ```swift
  /// let options = ZDCDownloadOptions()
  /// options.savePersistentlyToDiskManager = true  // "keep offline"
  /// _ = try await session.downloadManager.downloadNodeData(node, options: options)
  /// ```
  public var savePersistentlyToDiskManager: Bool {
    get { values.savePersistentlyToDiskManager }
    set { storage.withLock { $0.savePersistentlyToDiskManager = newValue } }
  }

  /// Whether the download continues while the app is in the background, or after the app has ended.
  ///
  /// A download that outlives the app is delivered to the delegate's `didBackgroundDownload…` at a later launch, unless
  /// another process of the app still waits for it.
  ///
  /// ```swift
  /// let options = ZDCDownloadOptions()
  /// options.canDownloadWhileInBackground = true
  /// _ = try await session.downloadManager.downloadNodeData(node, options: options)
  /// ```
  public var canDownloadWhileInBackground: Bool {
    get { values.canDownloadWhileInBackground }
    set { storage.withLock { $0.canDownloadWhileInBackground = newValue } }
  }

  /// The tag under which equal downloads share one completion: only that of the first one that still wants the result
  /// is called.
  public var completionConsolidationTag: String? {
    get { values.completionTag }
    set { storage.withLock { $0.completionTag = newValue } }
  }

  /// The name that the seeds use for ``completionConsolidationTag``.
  public var completionTag: String? {
    get { completionConsolidationTag }
    set { completionConsolidationTag = newValue }
  }
}

extension ZDCDownloadOptions.Values {
  package var isKept: Bool { cacheToDiskManager || savePersistentlyToDiskManager }

  /// The default options for metadata and thumbnails.
  static let metaDefault = ZDCDownloadOptions.Values(cacheToDiskManager: true)
}
