/// What a download brings of which node: equal ones are one download with several who wait.
package struct DownloadKey: Hashable, Sendable {
  package enum Part: Hashable, Sendable {
    case data
    case meta(ZDCNodeMetaComponents)
  }

  package var nodeID: String
  package var part: Part
}

extension DownloadKey.Part {
  /// As it stands in zdc_download.
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
