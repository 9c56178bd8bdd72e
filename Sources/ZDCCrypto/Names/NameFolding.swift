internal import Foundation
internal import ZDCProtocol

/// Why a text is not a node's name. The protocol's one departure from "any valid UTF-8".
public enum NameError: Error, Sendable, Hashable {
  case empty
  case containsNull
  /// More than 1,024 bytes of UTF-8 after folding.
  case tooLong
}

/// A name in the form that is stored and tagged: NFC, 1 to 1,024 bytes, no U+0000.
public struct FoldedName: Sendable, Hashable {
  public let utf8: [UInt8]

  /// Folds a name that an app gave. See ``NameFolding/fold(_:)``.
  public init(_ name: String) throws(NameError) {
    self = try NameFolding.fold(name)
  }

  fileprivate init(folded utf8: [UInt8]) {
    self.utf8 = utf8
  }

  public var string: String { String(decoding: utf8, as: UTF8.self) }
}

/// The one place where names are normalised (PROTOCOL 3.5). Two names are the same if their folded bytes are.
public enum NameFolding {
  /// Canonical decomposition, then canonical composition. Case stays.
  ///
  /// Only writers fold. Readers take the stored bytes as they are.
  public static func fold(_ name: String) throws(NameError) -> FoldedName {
    guard !name.utf8.isEmpty else { throw .empty }
    guard !name.utf8.contains(0) else { throw .containsNull }
    let folded = normalize(name)
    guard folded.count <= Limits.nameBytes else { throw .tooLong }
    return FoldedName(folded: folded)
  }

  /// NFC, by two steps: Foundation's one-step call is wrong for two rows of Unicode's NormalizationTest on Linux.
  static func normalize(_ text: String) -> [UInt8] {
    // Nothing below U+0300 composes or decomposes further in NFC.
    if text.unicodeScalars.allSatisfy({ $0.value < 0x300 }) { return Array(text.utf8) }
    return Array(text.decomposedStringWithCanonicalMapping.precomposedStringWithCanonicalMapping.utf8)
  }
}
