/// One call of a fetch.
package struct ImageRequest<Image: Sendable>: Sendable {
  package var options = ZDCFetchOptions.Values()
  /// Under which the variant is kept in memory; nil: it is not.
  package var processingID: String?
  /// nil: the image as it came.
  var processing: ZDCImageLoader<Image>.Processing?

  package init(_ options: ZDCFetchOptions?) {
    self.options = options?.values ?? .init()
  }

  package init(
    _ options: ZDCFetchOptions?, _ processingID: String?, _ processing: @escaping ZDCImageLoader<Image>.Processing
  ) {
    self.init(options)
    self.processingID = processingID
    self.processing = processing
  }

  /// Whether memory may have the result itself.
  package var isKept: Bool { processing == nil || processingID != nil }
}
