// An app imports only ZeroDarkCloud: paths, nodes, share lists and changesets are part of this framework's vocabulary.
@_exported public import ZDCAccounts
@_exported public import ZDCClientAPI
@_exported public import ZDCClientStore
@_exported public import ZDCMerge
@_exported public import ZDCSupport
@_exported public import ZDCSync
@_exported public import ZDCTransfers
@_exported public import ZDCTreesystem

// Errors that public functions throw. GRDB's is the error of an app's own statement.
@_exported public import struct GRDB.DatabaseError
// IDs in errors and in the sync manager's lists. The rest of the module is the wire format, which apps do not see.
@_exported public import typealias ZDCProtocol.ZDCNodeID
@_exported public import struct ZDCProtocol.ZDCSecurityError
@_exported public import struct ZDCProtocol.ZDCServerError
@_exported public import typealias ZDCProtocol.ZDCTreeID
@_exported public import typealias ZDCProtocol.ZDCUserID
@_exported public import struct ZDCProtocol.ZDCZoneID
