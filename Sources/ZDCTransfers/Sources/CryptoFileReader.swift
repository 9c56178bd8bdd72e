internal import ZDCCrypto

/// Opens a sealed file slice by slice, in constant memory, for an upload that seals it again under another key.
final class CryptoFileReader {
  private static let sliceBytes = 1 << 20
  private let file: LocalFile
  private let opener: ContentOpener

  package init(_ cryptoFile: ZDCCryptoFile) throws {
    file = try LocalFile.read(cryptoFile.fileURL)
    opener = ContentOpener(cryptoFile.reference, leaves: cryptoFile.leaves)
  }

  /// Returns the next verified bytes of the data section; nil at the end.
  ///
  /// - Throws: `ZDCSecurityError` if the file was changed or truncated.
  package func next() throws -> [UInt8]? {
    var data: [UInt8] = []
    while data.isEmpty {
      let bytes = try file.read(upTo: Self.sliceBytes)
      guard !bytes.isEmpty else {
        try opener.finish()
        return nil
      }
      try opener.push(bytes) { section, opened in
        if section == .data { data += opened }
      }
    }
    return data
  }
}
