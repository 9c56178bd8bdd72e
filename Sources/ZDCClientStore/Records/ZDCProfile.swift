public import Foundation
package import ZDCCrypto

/// The name and the avatar that a user shows to the people with whom they share.
///
/// The server stores them sealed, and sees neither. Anyone can choose any name: only a user's ID, which the safety number
/// confirms, says who they are.
public struct ZDCProfile: Sendable, Hashable {
  /// At most 256 bytes of UTF-8, without control characters and characters that change the direction of text.
  public var name: String
  /// The bytes of an image in the app's own format, at most 32 KiB; nil for none. The framework does not decode it.
  public var avatar: Data?

  /// Creates a profile.
  ///
  /// - Parameters:
  ///   - name: At most 256 bytes of UTF-8.
  ///   - avatar: At most 32 KiB, or nil.
  public init(name: String, avatar: Data? = nil) {
    self.name = name
    self.avatar = avatar
  }

  package init(_ profile: UserProfile) {
    self.init(name: profile.name, avatar: profile.avatar.isEmpty ? nil : Data(profile.avatar))
  }
}

extension UserProfile {
  /// The name as a list of users shows it; nil if there is nothing to see.
  package var shownName: String? { name.allSatisfy(\.isWhitespace) ? nil : name }
}
