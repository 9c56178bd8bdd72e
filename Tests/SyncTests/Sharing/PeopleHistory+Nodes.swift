import ZeroDarkCloudTesting

@testable import ZeroDarkCloud

// Changes of nodes.

extension PeopleHistory {
  mutating func change(_ device: TestDevice, of person: Int) async throws {
    switch pick(0...9) {
    case 0...3: try await create(device, of: person)
    case 4...5: try await edit(device, of: person)
    case 6: try await rename(device)
    case 7...8: try await move(device)
    default: try await delete(device)
    }
  }

  private func paths(_ device: TestDevice) async throws -> [String] { try await device.paths(below: "") }

  mutating func anyPath(_ device: TestDevice) async throws -> String? {
    try await paths(device).randomElement(using: &numbers)
  }

  /// A node that is neither a person's folder nor a graft.
  private mutating func anyInnerPath(_ device: TestDevice) async throws -> String? {
    try await paths(device).filter { path in
      let parts = path.split(separator: "/")
      return parts.count > 1 && parts.last?.first != "g"
    }.randomElement(using: &numbers)
  }

  mutating func name() -> String { ["x", "y", "z"].randomElement(using: &numbers) ?? "x" }

  private mutating func create(_ device: TestDevice, of person: Int) async throws {
    // Rights that narrow `w` allow little but new nodes at the top of a graft.
    let grafts = pick(0...2) == 0 ? try await device.graftPaths() : []
    var parent = grafts.randomElement(using: &numbers)
    if parent == nil { parent = try await anyPath(device) }
    if let parent { try await create(device, of: person, below: parent) }
  }

  mutating func create(_ device: TestDevice, of person: Int, below parent: String) async throws {
    let (path, text) = ("\(parent)/\(name())", token())
    let isDone = await log.attempt("creates \(path) \(text)", device) { try await device.create(path, text) }
    guard isDone else { return }
    let node = try await device.node(path)
    try wrote(text, node, device, person, isCreation: true)
    model.placed(node, below: try await device.node(parent))
  }

  private mutating func edit(_ device: TestDevice, of person: Int) async throws {
    await log.attempt("downloads", device) { try await device.download() }
    guard let path = try await anyInnerPath(device) else { return }
    try await edit(device, of: person, path)
  }

  mutating func edit(_ device: TestDevice, of person: Int, _ path: String) async throws {
    let text = token()
    let before = try await device.content(of: path).map { String(decoding: $0.data, as: UTF8.self) } ?? ""
    let node = try await device.node(path)
    let isDone = await log.attempt("edits \(path) \(text)", device) {
      try await device.edit(path, before + "\n" + text)
    }
    if isDone { try wrote(text, node, device, person, isCreation: false) }
  }

  private mutating func wrote(
    _ token: String, _ node: ZDCNode, _ device: TestDevice, _ person: Int, isCreation: Bool
  ) throws {
    let text = WrittenText(
      device: device.name, writer: person, position: try AccessModel.position(of: world.server),
      isCreation: isCreation, owners: [try people.owner(of: node) ?? person])
    model.wrote(token, text, into: node)
  }

  private mutating func rename(_ device: TestDevice) async throws {
    guard let path = try await anyInnerPath(device) else { return }
    let name = name()
    await log.attempt("renames \(path) \(name)", device) { try await device.rename(path, to: name) }
  }

  private mutating func move(_ device: TestDevice) async throws {
    guard let path = try await anyInnerPath(device), let parent = try await anyPath(device) else { return }
    try await move(device, path, below: parent)
  }

  /// Moves a node to another top folder or graft.
  mutating func moveAcross(_ device: TestDevice) async throws {
    guard let path = try await anyInnerPath(device) else { return }
    let others = try await paths(device).filter { $0.split(separator: "/").first != path.split(separator: "/").first }
    guard let parent = others.randomElement(using: &numbers) else { return }
    try await move(device, path, below: parent)
  }

  private mutating func move(_ device: TestDevice, _ path: String, below parent: String) async throws {
    let target = "\(parent)/\(name())"
    let (above, node) = (try await device.node(parent), try await device.node(path))
    let moved = Set(try await device.subtree(path).ids)
    let isDone = await log.attempt("moves \(path) \(target)", device) { try await device.move(path, to: target) }
    guard isDone else { return }
    model.placed(node, below: above)
    if let owner = try people.owner(of: above) ?? people.person(of: device) { model.moved(moved, to: owner) }
  }

  private mutating func delete(_ device: TestDevice) async throws {
    guard let path = try await anyInnerPath(device) else { return }
    try await delete(device, path)
  }

  private mutating func delete(_ device: TestDevice, _ path: String) async throws {
    let (ids, texts) = try await device.subtree(path)
    let isDone = await log.attempt("deletes \(path)", device) { try await device.delete(path) }
    if isDone { people.noteDeparture(from: ids, by: device) }
    model.deleted(ids, texts: texts)
  }

  /// Deletes the person's folder, with all that is shared in it, and creates another one.
  mutating func end(_ device: TestDevice, of person: Int) async throws {
    let path = people.folder(of: person)
    guard try await paths(device).contains(path) else { return }
    try await delete(device, path)
    for path in [path, path + "/x"] { await log.attempt("creates \(path)", device) { try await device.create(path) } }
  }
}
