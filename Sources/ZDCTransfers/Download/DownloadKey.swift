/// A node and the part of it that a download fetches. Requests with equal keys share one download.
package struct DownloadKey: Hashable, Sendable {
  package enum Part: Hashable, Sendable {
    case data
    case meta(ZDCNodeMetaComponents)
  }

  package var nodeID: String
  package var part: Part
}

extension DownloadKey.Part {
  /// The value stored in zdc_download.
  package var stored: Int {
    switch self {
    case .data: 0
    case .meta(let components): 1 + components.rawValue
    }
  }

  package init(stored: Int) {
    self = stored == 0 ? .data : .meta(ZDCNodeMetaComponents(rawValue: stored - 1))
  }
}
