/// What a download brings of which node: equal ones are one download with several who wait.
struct DownloadKey: Hashable, Sendable {
  enum Part: Hashable, Sendable {
    case data
    case meta(ZDCNodeMetaComponents)
  }

  var nodeID: String
  var part: Part
}

extension DownloadKey.Part {
  /// As it stands in zdc_download.
  var stored: Int {
    switch self {
    case .data: 0
    case .meta(let components): 1 + components.rawValue
    }
  }

  init(stored: Int) {
    self = stored == 0 ? .data : .meta(ZDCNodeMetaComponents(rawValue: stored - 1))
  }
}
