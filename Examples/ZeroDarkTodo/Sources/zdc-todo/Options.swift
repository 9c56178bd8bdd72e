import ArgumentParser
import Foundation
import TodoKit
import ZeroDarkCloud

/// The options of all commands.
struct Options: ParsableArguments {
  @Option(
    help: ArgumentHelp("The folder of the database. (default: $ZDC_TODO_FOLDER, else ~/.zdc-todo)", valueName: "path"))
  var folder: String?

  @Option(help: ArgumentHelp("The server. (default: the one used before, else $ZDC_SERVER)", valueName: "url"))
  var server: String?

  @Option(
    help: ArgumentHelp("The account, if there are several: its number in `zdc-todo account list`.", valueName: "number")
  )
  var account: Int?

  @Flag(help: "Do not contact the server. Changes stay queued.")
  var offline = false

  @Flag(help: "Print JSON.")
  var json = false

  private var environment: [String: String] { ProcessInfo.processInfo.environment }

  private var folderURL: URL {
    let path = folder ?? environment["ZDC_TODO_FOLDER"] ?? "~/.zdc-todo"
    return URL(fileURLWithPath: NSString(string: path).expandingTildeInPath)
  }

  /// Opens the database, and remembers the server beside it.
  func open(syncsAutomatically: Bool = false) throws -> ZDCManager {
    let file = folderURL.appendingPathComponent("server")
    let known = try? String(contentsOf: file, encoding: .utf8)
    guard let address = server ?? known ?? environment["ZDC_SERVER"] else {
      throw Failure(.configuration, "noServer", "no server is set; pass --server URL once")
    }
    let manager = try ZDCManager(server: address, folder: folderURL, syncsAutomatically: syncsAutomatically)
    if address != known { try Data(address.utf8).write(to: file, options: .atomic) }
    return manager
  }

  /// Runs `body` with the chosen account. Receives changes of other devices before it, and sends changes after it.
  func run(_ body: (Account) async throws -> Void) async throws {
    let manager = try open()
    let account = try await chosen(manager)
    let isOnline = offline ? false : try await sync(manager, account)
    try await body(account)
    if isOnline { _ = try await sync(manager, account) }
    let waiting = try await account.session.syncManager.syncState(forLocalUserID: account.user).pending.total
    let isSyncedElsewhere = try account.session.syncManager.isSyncedElsewhere()
    try await manager.close()
    if waiting > 0, !offline, !isSyncedElsewhere {
      throw Failure(.tryAgain, "queued", "stored on this device; \(waiting) changes wait for the server")
    }
  }

  /// Returns whether the server was reached. While `zdc-todo serve` runs on the same database, it syncs.
  func sync(_ manager: ZDCManager, _ account: Account) async throws -> Bool {
    do {
      try await manager.sync(account.user)
      return true
    } catch is TransportError {
      Output.note("zdc-todo: the server cannot be reached")
      return false
    } catch let error as ZDCError where error.code == .syncedElsewhere {
      return false
    }
  }

  private func chosen(_ manager: ZDCManager) async throws -> Account {
    let accounts = try await manager.accounts()
    let number = account ?? 1
    guard (1...max(accounts.count, 1)).contains(number) else {
      throw Failure(.usage, "noAccount", "there are \(accounts.count) accounts; `zdc-todo account list` shows them")
    }
    guard !accounts.isEmpty else {
      throw Failure(
        .configuration, "noAccount", "there is no account; run `zdc-todo account create` or `account login`")
    }
    return accounts[number - 1]
  }
}

extension Account {
  /// Finds a list by its title.
  func list(_ title: String) async throws -> ListItem {
    let lists = try await screen().lists
    let matches = lists.filter { $0.title == title }
    let similar = matches.isEmpty ? lists.filter { $0.title.lowercased() == title.lowercased() } : matches
    guard let list = similar.first else {
      throw Failure(.noInput, "noList", "no list has the title \(title.displayed)")
    }
    return list
  }

  /// Finds a task by its number in the list, its title, or the beginning of its title.
  func task(_ name: String, in list: ListItem) async throws -> TaskItem {
    let tasks = try await screen(list: list.id).tasks
    if let number = Int(name), (1...max(tasks.count, 1)).contains(number), !tasks.isEmpty { return tasks[number - 1] }
    let exact = tasks.filter { $0.task?.title == name }
    let matches = exact.isEmpty ? tasks.filter { $0.task?.title.hasPrefix(name) == true } : exact
    guard let task = matches.first else {
      throw Failure(.noInput, "noTask", "\(list.title.displayed) has no task \(name.displayed)")
    }
    guard matches.count == 1 else {
      throw Failure(.usage, "ambiguous", "\(matches.count) tasks match \(name.displayed); use the number of one")
    }
    return task
  }
}
