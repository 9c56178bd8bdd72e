// Apple's Foundation: what Linux's Foundation has too, under the same names and without the C library that comes with it
// there, and the parts of URL loading and Core Foundation that the sources use on Apple's systems only.

@_exported import Darwin
@_exported import Dispatch
public import Foundation
@_exported import FoundationEssentials

public typealias Bundle = Foundation.Bundle
public typealias Calendar = Foundation.Calendar
public typealias CharacterSet = Foundation.CharacterSet
public typealias CocoaError = Foundation.CocoaError
public typealias CustomNSError = Foundation.CustomNSError
public typealias Data = Foundation.Data
public typealias DataProtocol = Foundation.DataProtocol
public typealias Date = Foundation.Date
public typealias DateFormatter = Foundation.DateFormatter
public typealias FileAttributeKey = Foundation.FileAttributeKey
public typealias FileHandle = Foundation.FileHandle
public typealias FileManager = Foundation.FileManager
public typealias ISO8601DateFormatter = Foundation.ISO8601DateFormatter
public typealias InputStream = Foundation.InputStream
public typealias JSONDecoder = Foundation.JSONDecoder
public typealias JSONEncoder = Foundation.JSONEncoder
public typealias JSONSerialization = Foundation.JSONSerialization
public typealias Locale = Foundation.Locale
public typealias LocalizedError = Foundation.LocalizedError
public typealias NSError = Foundation.NSError
public typealias NSLock = Foundation.NSLock
public typealias NSNumber = Foundation.NSNumber
public typealias NSObject = Foundation.NSObject
public typealias NSObjectProtocol = Foundation.NSObjectProtocol
public typealias NSString = Foundation.NSString
public typealias OutputStream = Foundation.OutputStream
public typealias POSIXError = Foundation.POSIXError
public typealias Pipe = Foundation.Pipe
public typealias Process = Foundation.Process
public typealias ProcessInfo = Foundation.ProcessInfo
public typealias Progress = Foundation.Progress
public typealias ProgressUserInfoKey = Foundation.ProgressUserInfoKey
public typealias Stream = Foundation.Stream
public typealias StringEncoding = String.Encoding
public typealias Thread = Foundation.Thread
public typealias TimeInterval = Foundation.TimeInterval
public typealias TimeZone = Foundation.TimeZone
public typealias URL = Foundation.URL
public typealias URLComponents = Foundation.URLComponents
public typealias URLQueryItem = Foundation.URLQueryItem
public typealias URLResourceKey = Foundation.URLResourceKey
public typealias URLResourceValues = Foundation.URLResourceValues
public typealias UUID = Foundation.UUID

/// Not an alias: the name of a notification is itself an alias there, which public declarations could not use.
public struct Notification: Sendable {
  public struct Name: Hashable, Sendable {
    public init(_ rawValue: String) {}
  }
  public var name: Name
  public nonisolated(unsafe) var object: Any?
  public nonisolated(unsafe) var userInfo: [AnyHashable: Any]?
}

public typealias NSNotification = Notification

open class NotificationCenter: NSObject, @unchecked Sendable {
  open class var `default`: NotificationCenter { .init() }
  open func post(name: Notification.Name, object: Any?, userInfo: [AnyHashable: Any]? = nil) {}
  open func addObserver(
    forName name: Notification.Name?, object obj: Any?, queue: OperationQueue?,
    using block: @escaping @Sendable (Notification) -> Void
  ) -> any NSObjectProtocol { NSObject() }
}

public func NSHomeDirectory() -> String { "" }
public func NSTemporaryDirectory() -> String { "" }

// MARK: Core Foundation

public typealias OSStatus = Int32
public typealias CFTypeRef = AnyObject
public typealias CFString = String
public typealias CFDictionary = [String: Any]

// MARK: URL loading

public struct URLRequest: Sendable {
  public init(url: URL) {}
  public var url: URL?
  public var httpMethod: String?
  public mutating func setValue(_ value: String?, forHTTPHeaderField field: String) {}
  public func value(forHTTPHeaderField field: String) -> String? { nil }
}

open class URLResponse: NSObject, @unchecked Sendable {
  open var expectedContentLength: Int64 { 0 }
}

open class HTTPURLResponse: URLResponse, @unchecked Sendable {
  open var statusCode: Int { 0 }
  open func value(forHTTPHeaderField field: String) -> String? { nil }
}

open class URLSessionTask: NSObject, @unchecked Sendable {
  open var taskIdentifier: Int { 0 }
  open var taskDescription: String?
  open var originalRequest: URLRequest? { nil }
  open var response: URLResponse? { nil }
  open var countOfBytesClientExpectsToSend: Int64 = 0
  open var countOfBytesClientExpectsToReceive: Int64 = 0
  open func resume() {}
  open func cancel() {}
}

open class URLSessionDataTask: URLSessionTask, @unchecked Sendable {}
open class URLSessionUploadTask: URLSessionDataTask, @unchecked Sendable {}
open class URLSessionDownloadTask: URLSessionTask, @unchecked Sendable {}

open class URLSessionConfiguration: NSObject, @unchecked Sendable {
  open class func background(withIdentifier identifier: String) -> URLSessionConfiguration { .init() }
  open var sessionSendsLaunchEvents = false
  open var isDiscretionary = false
  open var timeoutIntervalForResource: TimeInterval = 0
  open var httpShouldSetCookies = false
  open var httpAdditionalHeaders: [AnyHashable: Any]?
}

open class OperationQueue: NSObject, @unchecked Sendable {}

open class URLSession: NSObject, @unchecked Sendable {
  public init(
    configuration: URLSessionConfiguration, delegate: (any URLSessionDelegate)?, delegateQueue queue: OperationQueue?
  ) {}
  open func downloadTask(with request: URLRequest) -> URLSessionDownloadTask { .init() }
  open func uploadTask(with request: URLRequest, fromFile fileURL: URL) -> URLSessionUploadTask { .init() }
  open func getAllTasks(completionHandler: @escaping @Sendable ([URLSessionTask]) -> Void) {}
  open var allTasks: [URLSessionTask] { get async { [] } }
  open func invalidateAndCancel() {}
  open func finishTasksAndInvalidate() {}
}

// The SDK makes the methods of these protocols optional. Here they are required, so that a method whose name or signature
// differs from the SDK's, and which the system would therefore never call, is an error.

public protocol URLSessionDelegate: NSObjectProtocol, Sendable {
  func urlSessionDidFinishEvents(forBackgroundURLSession session: URLSession)
}

public protocol URLSessionTaskDelegate: URLSessionDelegate {
  func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?)
}

public protocol URLSessionDownloadDelegate: URLSessionTaskDelegate {
  func urlSession(_ session: URLSession, downloadTask: URLSessionDownloadTask, didFinishDownloadingTo location: URL)
}
