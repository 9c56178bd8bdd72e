public import Foundation
internal import ZDCSupport
public import ZDCTreesystem

/// A delegate callback as a value, sent after its transaction has committed; see ``ZDCSyncManager/nodeEvents``.
///
/// ```swift
/// for await event in session.syncManager.nodeEvents {
///   switch event {
///   case .didDiscoverNewNode(let node, at: _): refreshRow(node.uuid)
///   case .didDiscoverModifiedNode(let node, with: _, at: _): refreshRow(node.uuid)
///   case .missed: refreshCell()  // some events were lost: read everything again
///   default: break
///   }
/// }
/// ```
public enum ZDCNodeEvent: Sendable, Hashable {
  /// A node's content is in the cloud.
  case didPushNodeData(ZDCNode, at: ZDCTreesystemPath)
  /// Another device created the node.
  case didDiscoverNewNode(ZDCNode, at: ZDCTreesystemPath)
  /// Another device changed the node's record or content.
  case didDiscoverModifiedNode(ZDCNode, with: ZDCNodeChange, at: ZDCTreesystemPath)
  /// The node was renamed or moved, by another device or to resolve a conflict.
  case didDiscoverMovedNode(ZDCNode, from: ZDCTreesystemPath, to: ZDCTreesystemPath)
  /// Another device deleted the node.
  case didDiscoverDeletedNode(ZDCNode, at: ZDCTreesystemPath, timestamp: Date?)
  /// Another device deleted the node while changes are queued here, of it or below it.
  case didDiscoverDeletedDirtyNode(ZDCNode, dirtyAncestors: [String], timestamp: Date?)
  /// A queued change conflicts with the cloud.
  case didDiscoverConflict(ZDCNodeConflict, forNode: ZDCNode, atPath: ZDCTreesystemPath)
  /// The server is reachable again.
  case didReconnectToInternet
  /// The listener was too slow and has lost this number of events before the next one. Read the database again.
  case missed(Int)
}

/// Events in the order in which they occurred, starting when this sequence was created. A maximum of 1,000 events is
/// kept for a slow listener; ``ZDCNodeEvent/missed(_:)`` reports the number of older events that were lost.
///
/// ```swift
/// for await event in session.syncManager.nodeEvents { print(event) }
/// ```
public struct ZDCNodeEvents: AsyncSequence, Sendable {
  /// A callback of the delegate.
  public typealias Element = ZDCNodeEvent
  /// Iterating never throws.
  public typealias Failure = Never
  fileprivate let mailbox: EventMailbox
  fileprivate let signals: AsyncStream<Void>

  /// Returns an iterator. All iterators of the sequence take from the same events.
  public func makeAsyncIterator() -> AsyncIterator {
    AsyncIterator(mailbox: mailbox, signals: signals.makeAsyncIterator())
  }

  /// Takes events from the sequence.
  public struct AsyncIterator: AsyncIteratorProtocol {
    fileprivate let mailbox: EventMailbox
    fileprivate var signals: AsyncStream<Void>.Iterator

    /// - Returns: Nil once the framework is closed or the task is cancelled.
    public mutating func next() async -> ZDCNodeEvent? {
      while true {
        if let event = mailbox.take() { return event }
        guard await signals.next() != nil else { return nil }
      }
    }
  }
}

/// Events that a listener has not taken yet.
final class EventMailbox: Sendable {
  fileprivate struct State {
    var events: [ZDCNodeEvent] = []
    /// The index of the first event that was not taken yet.
    var first = 0
    var missed = 0
  }

  private let state = Locked(State())
  private let limit: Int

  package init(limit: Int) {
    self.limit = limit
  }

  package func put(_ event: ZDCNodeEvent) {
    state.withLock { state in
      state.events.append(event)
      guard state.events.count - state.first > limit else { return }
      state.first += 1
      state.missed += 1
      state.shrink(limit)
    }
  }

  package func take() -> ZDCNodeEvent? {
    state.withLock { state in
      if state.missed > 0 {
        defer { state.missed = 0 }
        return .missed(state.missed)
      }
      guard state.first < state.events.count else { return nil }
      defer {
        state.first += 1
        state.shrink(limit)
      }
      return state.events[state.first]
    }
  }
}

extension EventMailbox.State {
  /// Frees the space of taken events, rarely enough to cost nothing.
  fileprivate mutating func shrink(_ limit: Int) {
    guard first == events.count || first > limit else { return }
    events.removeFirst(first)
    first = 0
  }
}

/// The listeners of ``ZDCSyncManager/nodeEvents``.
package final class NodeEventHub: Sendable {
  private struct State {
    var listeners: [UUID: (mailbox: EventMailbox, signal: AsyncStream<Void>.Continuation)] = [:]
    var isClosed = false
  }

  private let state = Locked(State())
  private let limit: Int

  package init(limit: Int = 1_000) {
    self.limit = limit
  }

  package var count: Int { state.withLock { $0.listeners.count } }

  package func send(_ event: ZDCNodeEvent) {
    for listener in state.withLock({ Array($0.listeners.values) }) {
      listener.mailbox.put(event)
      listener.signal.yield()
    }
  }

  package func events() -> ZDCNodeEvents {
    let (id, mailbox) = (UUID(), EventMailbox(limit: limit))
    let (signals, continuation) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
    continuation.onTermination = { [state] _ in state.withLock { $0.listeners[id] = nil } }
    let isClosed = state.withLock { state in
      if !state.isClosed { state.listeners[id] = (mailbox, continuation) }
      return state.isClosed
    }
    if isClosed { continuation.finish() }
    return ZDCNodeEvents(mailbox: mailbox, signals: signals)
  }

  package func close() {
    let ended = state.withLock { state in
      state.isClosed = true
      defer { state.listeners = [:] }
      return Array(state.listeners.values)
    }
    for listener in ended { listener.signal.finish() }
  }
}
