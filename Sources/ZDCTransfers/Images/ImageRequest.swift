/// One request for an image.
package struct ImageRequest<Image: Sendable>: Sendable {
  package var options = ZDCFetchOptions.Values()
  /// The ID under which the variant is kept in memory; nil if it is not kept.
  package var processingID: String?
  /// Makes the variant; nil for the original image.
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

  /// Whether the result itself may be kept in memory.
  package var isKept: Bool { processing == nil || processingID != nil }
}
