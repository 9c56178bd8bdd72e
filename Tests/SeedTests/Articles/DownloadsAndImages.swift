import Foundation
import ZeroDarkCloud

/// The examples of the article "Downloads and images", as an app would have them.
final class DownloadsArticle: Sendable {
  struct Picture: Sendable { var bytes: Data }
  struct Item: Sendable { var id = "" }

  @MainActor final class ImageCell {
    var taskID = ""
    func show(_ image: ZDCPlatformImage?) {}
  }

  let zdc: ZeroDarkCloud
  let localUserID: String

  init(zdc: ZeroDarkCloud, localUserID: String) {
    self.zdc = zdc
    self.localUserID = localUserID
  }

  func aDownload(_ downloads: ZDCDownloadManager, _ disk: ZDCDiskManager, node: ZDCNode) async throws -> Data {
    let options = ZDCDownloadOptions()
    options.cacheToDiskManager = true
    let (info, file) = try await downloads.downloadNodeData(node, options: options)
    print("\(info.dataSize) bytes of version \(info.eTag)")
    let cleartext = try ZDCFileConversion.decryptCryptoFile(intoMemory: file)
    disk.deleteFileIfUnmanaged(file.fileURL)
    return cleartext
  }

  func marks(cloudTransaction: ZDCCloudTransaction, node: ZDCNode, info: ZDCCloudDataInfo) {
    cloudTransaction.markNodeAsNeedsDownload(node.uuid, components: .all)
    cloudTransaction.unmarkNodeAsNeedsDownload(node.uuid, components: .all, ifETagMatches: info.eTag)
  }

  func anImport(
    _ connection: ZDCDatabaseConnection, _ disk: ZDCDiskManager, url: URL, path: ZDCTreesystemPath
  ) async throws {
    let (zdc, localUserID) = (zdc, localUserID)
    let photo = ZDCDiskImport(cleartextFileURL: url)
    photo.storePersistently = true
    photo.migrateToCacheAfterUpload = true
    try await connection.write { transaction in
      guard let cloud = zdc.cloudTransaction(transaction, forLocalUserID: localUserID) else { return }
      let node = try cloud.createNode(withPath: path)
      try disk.importNodeData(photo, for: node)
    }
  }

  func data(for node: ZDCNode, at path: ZDCTreesystemPath, transaction: ZDCReadTransaction) throws -> ZDCData {
    guard let file = zdc.diskManager?.nodeData(node)?.cryptoFile else { throw ZDCError(.noContent) }
    return ZDCData(cryptoFile: file)
  }

  func anExport(_ disk: ZDCDiskManager, node: ZDCNode) throws {
    if let export = disk.nodeData(node), let file = export.cryptoFile {
      let isCurrent = export.eTag == node.eTag_data
      let text = String(decoding: try ZDCFileConversion.decryptCryptoFile(intoMemory: file), as: UTF8.self)
      print(isCurrent ? text : "older: \(text)")
    }
  }

  func limits(_ disk: ZDCDiskManager) {
    disk.maxNodeDataCacheSize = 200 << 20
    disk.defaultNodeDataCacheExpiration = 30 * 24 * 3_600
    print("\(disk.storageSizeForCachedNodeData()) bytes of contents are cached")
  }

  @MainActor func aThumbnail(node: ZDCNode, task: Item, cell: ImageCell) {
    let taskID = task.id
    zdc.imageManager?.fetchNodeThumbnail(node) { image, willFetch in
      cell.show(image)
    } postFetch: { image, error in
      // The cell may show another task by now.
      if cell.taskID == taskID { cell.show(image) }
    }
  }

  @MainActor func aVariant(_ images: ZDCImageManager, node: ZDCNode, cell: ImageCell) {
    let rounded: @Sendable (ZDCPlatformImage) -> ZDCPlatformImage = { $0 }
    images.fetchNodeThumbnail(
      node, processingID: "round", processingBlock: { rounded($0) }, preFetch: { image, _ in cell.show(image) },
      postFetch: { image, _ in cell.show(image) })
  }

  func anotherType() -> ZDCImageLoader<Picture>? {
    let pictures = zdc.imageLoader(cost: { $0.bytes.count }, decode: { Picture(bytes: $0) })
    return pictures
  }

  func changes(_ disk: ZDCDiskManager, node: ZDCNode, reload: () -> Void) async {
    for await changes in disk.changes where changes.changedNodeThumbnails.contains(node.uuid) {
      reload()
    }
  }
}
