/// One call of a fetch.
struct ImageRequest<Image: Sendable>: Sendable {
  var options = ZDCFetchOptions.Values()
  /// Under which the variant is kept in memory; nil: it is not.
  var processingID: String?
  /// nil: the image as it came.
  var processing: ZDCImageLoader<Image>.Processing?

  init(_ options: ZDCFetchOptions?) {
    self.options = options?.values ?? .init()
  }

  init(_ options: ZDCFetchOptions?, _ processingID: String?, _ processing: @escaping ZDCImageLoader<Image>.Processing) {
    self.init(options)
    self.processingID = processingID
    self.processing = processing
  }

  /// Whether memory may have the result itself.
  var isKept: Bool { processing == nil || processingID != nil }
}
