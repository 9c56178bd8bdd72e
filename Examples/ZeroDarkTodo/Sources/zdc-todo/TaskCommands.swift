import ArgumentParser
import Foundation
import TodoKit
import ZeroDarkCloud

struct Lists: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Show all lists.", discussion: "EXAMPLES\n  zdc-todo lists\n  zdc-todo lists --json")
  @OptionGroup var options: Options

  func run() async throws {
    try await options.run { account in
      let lists = try await account.screen().lists.map(ListJSON.init)
      if options.json { return Output.line(try Output.json(lists)) }
      for list in lists {
        let badges = list.badges.isEmpty ? "" : "  (\(list.badges.joined(separator: ", ")))"
        Output.line("\(list.done)/\(list.tasks)  \(list.title.displayed)\(badges)")
      }
    }
  }
}

struct Tasks: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Show the tasks of a list.", discussion: "EXAMPLES\n  zdc-todo tasks Groceries")
  @Argument(help: "The title of the list.") var list: String
  @OptionGroup var options: Options

  func run() async throws {
    try await options.run { account in
      let listID = try await account.list(list).id
      let items = try await account.screen(list: listID).tasks
      let tasks = TaskJSON.numbered(items)
      try await account.recordNumbers(of: items.map(\.id), inList: listID)
      if options.json { return Output.line(try Output.json(tasks)) }
      for task in tasks { Output.line(task.line) }
    }
  }
}

struct Add: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Add tasks to a list, and create the list if it does not exist.",
    discussion: """
      EXAMPLES
        zdc-todo add Groceries
        zdc-todo add Groceries milk "oat flakes" --priority high
      """)
  @Argument(help: "The title of the list.") var list: String
  @Argument(help: "The titles of the tasks.") var titles: [String] = []
  @Option(help: "low, normal or high.") var priority = Priority.normal
  @Option(help: "The details of the tasks.") var details = ""
  @OptionGroup var options: Options

  func run() async throws {
    try await options.run { account in
      let known = try await account.screen().lists.first { $0.title == list }?.id
      let listID = if let known { known } else { try await account.createList(list) }
      for title in titles { try await account.addTask(title, details: details, priority: priority, to: listID) }
    }
  }
}

extension Priority: ExpressibleByArgument {}

struct Edit: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Change the title, details or priority of a task.",
    discussion: "EXAMPLES\n  zdc-todo edit Groceries milk --title \"oat milk\" --priority high")
  @Argument(help: "The title of the list.") var list: String
  @Argument(help: "The task: its title or number.") var task: String
  @Option(help: "The new title.") var title: String?
  @Option(help: "The new details.") var details: String?
  @Option(help: "low, normal or high.") var priority: Priority?
  @OptionGroup var options: Options

  func run() async throws {
    let (title, details, priority) = (title, details, priority)
    try await options.run(tasks: [task], in: list) { account, _, tasks in
      try await account.edit(tasks[0]) { task in
        task.title = title ?? task.title
        task.details = details ?? task.details
        task.priority = priority ?? task.priority
      }
    }
  }
}

struct Done: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Complete tasks, or open them again.",
    discussion: "EXAMPLES\n  zdc-todo done Groceries milk bread\n  zdc-todo done Groceries 3 --not")
  @Argument(help: "The title of the list.") var list: String
  @Argument(help: "The tasks: their titles or numbers.") var tasks: [String]
  @Flag(name: .customLong("not"), help: "Open them again.") var isOpen = false
  @OptionGroup var options: Options

  func run() async throws {
    let isDone = !isOpen
    try await options.run(tasks: tasks, in: list) { account, _, tasks in
      for task in tasks { try await account.edit(task) { $0.isDone = isDone } }
    }
  }
}

struct Move: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Move a task within its list or to another list.",
    discussion: """
      EXAMPLES
        zdc-todo move Groceries milk --before bread
        zdc-todo move Groceries milk --last
        zdc-todo move Groceries milk --to Market
      """)
  @Argument(help: "The title of the list.") var list: String
  @Argument(help: "The task: its title or number.") var task: String
  @Option(help: "The task that comes after it.") var before: String?
  @Flag(help: "To the end of its list.") var last = false
  @Option(help: "The title of another list.") var to: String?
  @OptionGroup var options: Options

  func validate() throws {
    guard [before != nil, last, to != nil].count(where: { $0 }) == 1 else {
      throw ValidationError("Give one of --before, --last and --to.")
    }
  }

  func run() async throws {
    try await options.run(tasks: [task] + (before.map { [$0] } ?? []), in: list) { account, _, tasks in
      if let to { return try await account.moveTask(tasks[0], toList: account.list(to).id) }
      try await account.moveTask(tasks[0], before: tasks.dropFirst().first)
    }
  }
}

struct Rename: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Rename a list.", discussion: "EXAMPLES\n  zdc-todo rename Groceries Market")
  @Argument(help: "The title of the list.") var list: String
  @Argument(help: "The new title.") var title: String
  @OptionGroup var options: Options

  func run() async throws {
    try await options.run { account in try await account.renameList(account.list(list).id, to: title) }
  }
}

struct Delete: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Delete tasks, or a list with all of its tasks and photos, for all of its members.",
    discussion: "EXAMPLES\n  zdc-todo delete Groceries milk\n  zdc-todo delete Groceries --all")
  @Argument(help: "The title of the list.") var list: String
  @Argument(help: "The tasks: their titles or numbers.") var tasks: [String] = []
  @Flag(help: "Delete the list itself.") var all = false
  @OptionGroup var options: Options

  func validate() throws {
    if all != tasks.isEmpty { throw ValidationError("Name the tasks, or pass --all to delete the list.") }
  }

  func run() async throws {
    try await options.run(tasks: tasks, in: list) { account, list, tasks in
      if all {
        guard list.isOwn else {
          let title = list.title.displayed
          throw Failure(.usage, "otherList", "\(title) belongs to another user; use `zdc-todo leave` to leave it")
        }
        try await account.deleteList(list.id)
      }
      for task in tasks { try await account.deleteTask(task) }
    }
  }
}
