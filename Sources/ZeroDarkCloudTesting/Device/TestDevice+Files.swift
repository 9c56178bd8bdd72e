internal import Foundation
public import ZDCTreesystem
public import ZeroDarkCloud

// App operations on nodes, by path. Each call is one transaction.

extension TestDevice {
  /// Runs a transaction of the app.
  ///
  /// ```swift
  /// try await a.write { transaction, cloud in
  ///   let node = try cloud.createNode(withPath: path)
  ///   cloud.setTag("inbox", forNodeID: node.uuid, withIdentifier: "com.example.list")
  /// }
  /// ```
  @discardableResult
  public func write<T: Sendable>(
    user: String? = nil, _ body: @escaping @Sendable (ZDCReadWriteTransaction, ZDCCloudTransaction) throws -> T
  ) async throws -> T {
    let zdc = try zdc
    let user = try user ?? localUserID
    return try await database.write { transaction in
      guard let cloud = zdc.cloudTransaction(transaction, forLocalUserID: user) else {
        throw TestFailure("no cloud transaction")
      }
      return try body(transaction, cloud)
    }
  }

  /// Creates a node with a text as content and queues its upload.
  ///
  /// ```swift
  /// try await a.create("/list")
  /// try await a.create("/list/milk", "2 litres")
  /// ```
  ///
  /// - Parameters:
  ///   - path: The path of the node, such as `/a/b`. Its parent must exist.
  ///   - text: The content.
  ///   - user: The local user; nil for the first one of the device.
  /// - Throws: ``ZDCCloudError`` with `missingParent` or `conflict`.
  @discardableResult
  public func create(_ path: String, _ text: String = "", user: String? = nil) async throws -> ZDCNode {
    try await create(path, TestContent(text), user: user)
  }

  /// Creates a node with content that has several sections, and queues its upload.
  ///
  /// ```swift
  /// try await a.create("/photo.jpg", TestContent(data: Data(count: 1 << 20), thumbnail: Data(count: 4_096)))
  /// ```
  @discardableResult
  public func create(_ path: String, _ content: TestContent, user: String? = nil) async throws -> ZDCNode {
    try await write(user: user) { transaction, cloud in
      let node = try cloud.createNode(withPath: try Self.path(path))
      RecordingDelegate.store(content, of: node, transaction)
      return node
    }
  }

  /// Creates `count` empty nodes in a folder, named by number, in one transaction.
  ///
  /// ```swift
  /// try await a.create("/archive")
  /// try await a.create(1_000, in: "/archive")
  /// ```
  public func create(_ count: Int, in folder: String) async throws {
    try await write { transaction, cloud in
      for number in 0..<count {
        let node = try cloud.createNode(withPath: try Self.path("\(folder)/\(number)"))
        RecordingDelegate.store(TestContent(""), of: node, transaction)
      }
    }
  }

  /// Stores new content and queues its upload.
  ///
  /// ```swift
  /// try await a.edit("/list/milk", "3 litres")
  /// try await a.sync()
  /// ```
  public func edit(_ path: String, _ text: String, user: String? = nil) async throws {
    try await write(user: user) { transaction, cloud in
      let node = try cloud.existingNode(path)
      var content =
        try RecordingDelegate.content(of: node, transaction) ?? TestContent(data: Data(), eTag: node.eTag_data)
      content.data = Data(text.utf8)
      RecordingDelegate.store(content, of: node, transaction)
      cloud.queueDataUpload(forNodeID: node.uuid, withChangeset: nil)
    }
  }

  /// Stores new content with its sections and queues its upload.
  ///
  /// ```swift
  /// try await a.edit("/photo", to: TestContent(data: jpeg, thumbnail: Data("small".utf8)))
  /// ```
  public func edit(_ path: String, to content: TestContent, user: String? = nil) async throws {
    try await write(user: user) { transaction, cloud in
      let node = try cloud.existingNode(path)
      var content = content
      content.eTag = node.eTag_data
      RecordingDelegate.store(content, of: node, transaction)
      cloud.queueDataUpload(forNodeID: node.uuid, withChangeset: nil)
    }
  }

  /// Renames the node at a path.
  ///
  /// ```swift
  /// try await a.rename("/list/milk", to: "oat milk")
  /// ```
  public func rename(_ path: String, to name: String, user: String? = nil) async throws {
    try await write(user: user) { _, cloud in
      var node = try cloud.existingNode(path)
      node.name = name
      _ = try cloud.modifyNode(node)
    }
  }

  /// Moves the node at a path, and all nodes below it, to another path.
  ///
  /// ```swift
  /// try await a.move("/list/milk", to: "/archive/milk")
  /// ```
  ///
  /// - Throws: ``ZDCCloudError`` if the parent is missing or the name is taken.
  public func move(_ path: String, to newPath: String, user: String? = nil) async throws {
    try await write(user: user) { _, cloud in
      _ = try cloud.moveNode(try cloud.existingNode(path), to: try Self.path(newPath))
    }
  }

  /// Deletes the node at a path and all nodes below it.
  ///
  /// ```swift
  /// try await a.delete("/list")
  /// ```
  public func delete(_ path: String, user: String? = nil) async throws {
    try await write(user: user) { _, cloud in _ = try cloud.delete(try cloud.existingNode(path)) }
  }

  /// Returns the node at a path.
  ///
  /// ```swift
  /// let node = try await a.node("/list/milk")
  /// ```
  ///
  /// - Throws: ``TestFailure`` if there is none.
  public func node(_ path: String, user: String? = nil) async throws -> ZDCNode {
    try await write(user: user) { _, cloud in try cloud.existingNode(path) }
  }

  /// Explains why the node is not in sync.
  ///
  /// ```swift
  /// a.network.isOffline = true
  /// try await a.edit("/notes", "milk")
  /// #expect(try await a.explain("/notes")?.isInSync == false)
  /// ```
  public func explain(_ path: String, user: String? = nil) async throws -> ZDCNodeExplanation? {
    try await write(user: user) { _, cloud in cloud.explain(nodeID: try cloud.existingNode(path).uuid) }
  }

  /// Returns the content that the app stores for the node; nil if nothing was downloaded.
  ///
  /// ```swift
  /// let content = try await b.content(of: "/list/milk")
  /// #expect(content?.data == Data("2 litres".utf8))
  /// ```
  public func content(of path: String, user: String? = nil) async throws -> TestContent? {
    try await write(user: user) { transaction, cloud in
      try RecordingDelegate.content(of: try cloud.existingNode(path), transaction)
    }
  }

  static func path(_ text: String) throws -> ZDCTreesystemPath {
    guard let path = ZDCTreesystemPath(text) else { throw TestFailure("not a path: \(text)") }
    return path
  }
}

extension ZDCCloudReadTransaction {
  func existingNode(_ path: String) throws -> ZDCNode {
    guard let node = node(path: try TestDevice.path(path)) else { throw TestFailure("no node at \(path)") }
    return node
  }

  /// Returns `/a/b`, built by walking up from the node.
  func shownPath(of node: ZDCNode) -> String {
    var names: [String] = []
    var current: ZDCNode? = node
    while let step = current, step.trunk == nil {
      names.insert(step.name ?? "?", at: 0)
      current = step.parentID.flatMap { self.node(id: $0) }
    }
    return ZDCTreesystemPath(pathComponents: names).relativePath()
  }
}
