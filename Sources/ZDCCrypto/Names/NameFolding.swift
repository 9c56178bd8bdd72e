internal import Foundation
internal import ZDCProtocol

/// The reason why a text is not a node name. This is the protocol's only exception to "any valid UTF-8".
package enum NameError: Error, Sendable, Hashable {
  case empty
  case containsNull
  /// More than 1,024 bytes of UTF-8 after folding.
  case tooLong
}

/// A name in its stored and tagged form: NFC, 1 to 1,024 bytes, no U+0000.
package struct FoldedName: Sendable, Hashable {
  package let utf8: [UInt8]

  /// Folds a name from the app. See ``NameFolding/fold(_:)``.
  package init(_ name: String) throws(NameError) {
    self = try NameFolding.fold(name)
  }

  fileprivate init(folded utf8: [UInt8]) {
    self.utf8 = utf8
  }

  package var string: String { String(decoding: utf8, as: UTF8.self) }
}

/// Normalizes names; no other code does (PROTOCOL 3.5). Two names are the same if their folded bytes are.
package enum NameFolding {
  /// Folds a name by canonical decomposition, then canonical composition. Case is kept.
  ///
  /// Only writers fold. Readers use the stored bytes unchanged.
  package static func fold(_ name: String) throws(NameError) -> FoldedName {
    guard !name.utf8.isEmpty else { throw .empty }
    guard !name.utf8.contains(0) else { throw .containsNull }
    let folded = normalize(name)
    guard folded.count <= Limits.nameBytes else { throw .tooLong }
    return FoldedName(folded: folded)
  }

  /// Returns NFC in two steps. Foundation's one-step call is wrong for two rows of Unicode's NormalizationTest on
  /// Linux.
  static func normalize(_ text: String) -> [UInt8] {
    // Nothing below U+0300 composes or decomposes further in NFC.
    if text.unicodeScalars.allSatisfy({ $0.value < 0x300 }) { return Array(text.utf8) }
    return Array(text.decomposedStringWithCanonicalMapping.precomposedStringWithCanonicalMapping.utf8)
  }
}
