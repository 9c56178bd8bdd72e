import ArgumentParser
import Foundation
import TodoKit
import ZeroDarkCloud

struct Photo: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Attach, replace, fetch or remove the photo of a task.",
    discussion: """
      EXAMPLES
        zdc-todo photo Groceries milk --attach bottle.jpg
        zdc-todo photo Groceries milk --get copy.jpg
        zdc-todo photo Groceries milk --remove
      """)
  @Argument(help: "The title of the list.") var list: String
  @Argument(help: "The task: its title or number.") var task: String
  @Option(help: ArgumentHelp("A JPEG, PNG or WebP file of at most 25 MB.", valueName: "file")) var attach: String?
  @Option(help: ArgumentHelp("Write the photo to this file.", valueName: "file")) var get: String?
  @Flag(help: "Remove the photo.") var remove = false
  @OptionGroup var options: Options

  func validate() throws {
    guard [attach != nil, get != nil, remove].count(where: { $0 }) == 1 else {
      throw ValidationError("Give one of --attach, --get and --remove.")
    }
  }

  func run() async throws {
    try await options.run(tasks: [task], in: list) { account, _, tasks in
      if remove { return try await account.removePhoto(from: tasks[0]) }
      if let get { return try await fetch(tasks[0], account, to: URL(fileURLWithPath: get)) }
      if let attach { try await send(Picture(file: URL(fileURLWithPath: attach)), account, to: tasks[0]) }
    }
  }

  private func send(_ picture: Picture, _ account: Account, to id: String) async throws {
    let thumbnail = try await picture.thumbnail()
    if thumbnail == nil { Output.note("zdc-todo: without a thumbnail, because vipsthumbnail is not installed") }
    try await account.attachPhoto(picture.data, thumbnail: thumbnail, to: id)
  }

  private func fetch(_ id: String, _ account: Account, to url: URL) async throws {
    guard let photo = try await account.photos.data(of: id) else {
      throw Failure(.noInput, "noPhoto", "the task has no photo")
    }
    try photo.write(to: url, options: .withoutOverwriting)
  }
}

struct Activities: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "activity",
    abstract: "Show this device's changes, the outcomes of conflicts, and lists that others have ended.",
    discussion: "EXAMPLES\n  zdc-todo activity")
  @OptionGroup var options: Options

  func run() async throws {
    try await options.run { account in
      let activity = try await account.screen().activity
      if options.json { return Output.line(try Output.json(activity.map(ActivityJSON.init))) }
      for entry in activity {
        let undo = entry.isUndone ? "  (undone)" : entry.canUndo ? "  undo \(entry.id)" : ""
        Output.line("\(entry.date.formatted(.iso8601))  \(entry.title.displayed): \(entry.change)\(undo)")
      }
    }
  }
}

struct Undo: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Undo a change of this device or the outcome of a conflict, or redo a change that was undone.",
    discussion: """
      A deleted task or list is created again, without photos, and is not shared any more. The creation of a list is undone \
      only while the list has no tasks.

      EXAMPLES
        zdc-todo undo
        zdc-todo undo 0F2C3B0E-7C57-4A7E-9A53-0D7B3E5A1C11
      """)
  @Argument(help: "The id in `zdc-todo activity`. (default: the latest that is not undone)") var id: String?
  @OptionGroup var options: Options

  func run() async throws {
    try await options.run { account in
      let latest = try await account.screen().activity.first { $0.canUndo && !$0.isUndone }?.id
      guard let id = id ?? latest else { throw Failure(.noInput, "nothing", "there is nothing to undo") }
      try await account.undo(id)
    }
  }
}

struct Explain: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Say why a task is not in the cloud yet.", discussion: "EXAMPLES\n  zdc-todo explain Groceries milk")
  @Argument(help: "The title of the list.") var list: String
  @Argument(help: "The task: its title or number.") var task: String
  @OptionGroup var options: Options

  func run() async throws {
    try await options.run(tasks: [task], in: list) { account, _, tasks in
      let operations = try await account.explain(tasks[0])
      if options.json { return Output.line(try Output.json(operations)) }
      if operations.isEmpty { Output.line("all changes of this task are in the cloud") }
      for operation in operations {
        Output.line("\(operation.kind): \(operation.reason), until \(operation.unblockedBy)")
      }
    }
  }
}

struct Export: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Print all tasks, or those of a list, as todo.txt.",
    discussion: """
      Ends with 1 if tasks are missing, because they are not downloaded yet or cannot be read.

      EXAMPLES
        zdc-todo export > todo.txt
        zdc-todo export Groceries
        zdc-todo export --json
      """)
  @Argument(help: "The title of a list.") var list: String?
  @OptionGroup var options: Options

  func run() async throws {
    var missing = 0
    let unreadable = try await options.run { account in
      let lists = if let list { [try await account.list(list)] } else { try await account.screen().lists }
      var contents: [(list: ListItem, items: [TaskItem])] = []
      for list in lists { contents.append((list, try await account.screen(list: list.id).tasks)) }
      missing = contents.reduce(0) { $0 + $1.items.count { $0.task == nil } }
      if options.json {
        return Output.line(try Output.json(contents.map { ListContentJSON(title: $0.list.title, items: $0.items) }))
      }
      for (list, items) in contents {
        for task in items.compactMap(\.task) { Output.line(TodoText(task, list: list.title).line) }
      }
    }
    if missing > 0 {
      throw Failure(
        .failure, "incomplete", "\(missing) tasks are missing: they are not downloaded yet or cannot be read")
    }
    if unreadable > 0, list == nil {
      throw Failure(
        .failure, "incomplete", "\(unreadable) lists or tasks cannot be read; earlier versions of them were printed")
    }
  }
}

struct Import: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Add the tasks of a todo.txt file.",
    discussion: """
      A task goes to the list that its +project names, else to --list. Missing lists are created.

      EXAMPLES
        zdc-todo import todo.txt
        zdc-todo import - --list Inbox < todo.txt
      """)
  @Argument(help: "The file, or - for standard input.") var file: String
  @Option(help: "The list for tasks without a project.") var list = "Inbox"
  @OptionGroup var options: Options

  func run() async throws {
    let data =
      file == "-" ? FileHandle.standardInput.readDataToEndOfFile() : try Data(contentsOf: URL(fileURLWithPath: file))
    let texts = String(decoding: data, as: UTF8.self).split(whereSeparator: \.isNewline)
      .compactMap { TodoText(line: String($0)) }
    try await options.run { account in
      let known = Dictionary(try await account.screen().lists.map { ($0.title, $0.id) }) { first, _ in first }
      for (title, texts) in Dictionary(grouping: texts, by: { $0.list ?? list }).sorted(by: { $0.key < $1.key }) {
        let listID = if let known = known[title] { known } else { try await account.createList(title) }
        try await account.addTasks(texts.map(\.task), to: listID)
      }
      if options.json { return Output.line(try Output.json(["imported": texts.count])) }
      Output.note("zdc-todo: imported \(texts.count) tasks")
    }
  }
}

struct Sync: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Send and receive all changes.", discussion: "EXAMPLES\n  zdc-todo sync")
  @OptionGroup var options: Options

  func run() async throws {
    let unreadable = try await options.run { _ in }
    if unreadable > 0 {
      throw Failure(
        .failure, "unreadable", "\(unreadable) lists or tasks cannot be read; update zdc-todo, and sync again")
    }
  }
}

struct Repair: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Show which data of the server failed verification, and accept the server's state.",
    discussion: """
      A server that shows an older or another state than before has lost data, or is hostile. What this device has stays, \
      and nothing is sent or received. Ask the operator whether the server was restored from a backup. If it was, pass \
      --accept-server: this device then sends what the server has lost. If not, copy your lists with `zdc-todo export \
      --offline`, and do not accept.

      EXAMPLES
        zdc-todo repair
        zdc-todo repair --accept-server
      """)
  @Flag(help: "Accept the server's state, and send what it has lost.") var acceptServer = false
  @OptionGroup var options: Options

  func run() async throws {
    let manager = try options.open()
    let account = try await options.chosen(manager)
    let sync = account.session.syncManager
    let zones = try await sync.frozenZones(localUserID: account.user)
    for zone in zones {
      Output.note("zdc-todo: \(zone.error) since \(zone.since.formatted(.iso8601)): \(zone.error.explanation)")
      if acceptServer { try await sync.acceptServerState(ofZone: zone.zone, localUserID: account.user) }
    }
    if options.json { Output.line(try Output.json(zones.map(\.error.description))) }
    if acceptServer, !zones.isEmpty {
      _ = try await options.sync(manager, account)
      return try await options.close(manager, account)
    }
    try await manager.close()
    if zones.isEmpty { return Output.note("zdc-todo: all of the server's data was verified") }
    throw Failure(
      .security, "frozen",
      "these trees are neither sent nor received; `zdc-todo repair --help` says what to do")
  }
}
