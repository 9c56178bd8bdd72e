/// Stand-in: the protocol of seed 003 takes this file's place.
public protocol ZeroDarkCloudDelegate: AnyObject, Sendable {}
