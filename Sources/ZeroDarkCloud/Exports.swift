// An app imports ZeroDarkCloud and nothing else of ours: paths, nodes and share lists are part of this framework's
// vocabulary.
@_exported public import ZDCTreesystem

@_exported public import struct ZDCProtocol.ZDCSecurityError
