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

  /// Opens the database, and stores the server's address next to it.
  func open(syncsAutomatically: Bool = false) throws -> ZDCManager {
    let file = folderURL.appendingPathComponent("server")
    let isKnown = FileManager.default.fileExists(atPath: file.path)
    let known = isKnown ? try String(contentsOf: file, encoding: .utf8) : nil
    guard let address = server ?? known ?? environment["ZDC_SERVER"] else {
      throw Failure(.configuration, "noServer", "no server is set; pass --server URL once")
    }
    let manager = try ZDCManager(server: address, folder: folderURL, syncsAutomatically: syncsAutomatically)
    if address != known { try Data(address.utf8).write(to: file, options: .atomic) }
    return manager
  }

  /// Runs `body` with the chosen account. Receives changes of other devices before it, and sends changes after it.
  ///
  /// - Returns: The number of lists and tasks that arrived, but could not be read.
  @discardableResult
  func run(_ body: (Account) async throws -> Void) async throws -> Int {
    let manager = try open()
    let account = try await chosen(manager)
    var unreadable = offline ? nil : try await sync(manager, account)
    try await body(account)
    if unreadable != nil { unreadable = try await sync(manager, account) }
    try await close(manager, account)
    return unreadable ?? 0
  }

  /// Runs `body` with the named tasks of a list.
  ///
  /// A number means the task that the last `zdc-todo tasks` has printed with it, whatever has arrived since.
  func run(
    tasks names: [String], in title: String, _ body: (Account, ListItem, _ tasks: [String]) async throws -> Void
  ) async throws {
    try await run { account in
      let list = try await account.list(title)
      // All are looked up before the first change, so that a wrong name changes nothing.
      var found: [String] = []
      for name in names { found.append(try await account.task(name, in: list)) }
      try await body(account, list, found)
    }
  }

  /// Closes the database.
  ///
  /// - Throws: ``Failure`` if a tree is frozen, or changes were not sent.
  func close(_ manager: ZDCManager, _ account: Account) async throws {
    let state = try await account.session.syncManager.syncState(forLocalUserID: account.user)
    let isSyncedElsewhere = try account.session.syncManager.isSyncedElsewhere()
    try await manager.close()
    if offline { return }
    guard state.frozenZones.isEmpty else {
      throw Failure(
        .security, "frozen",
        "\(Self.frozen(state)); run `zdc-todo repair` for instructions"
      )
    }
    if state.pending.total > 0, !isSyncedElsewhere {
      throw Failure(.tryAgain, "queued", "stored on this device; \(state.pending.total) changes wait for the server")
    }
  }

  /// A frozen tree is the account's own one, or a shared list. The others are still synced.
  private static func frozen(_ state: ZDCSyncState) -> String {
    let count = state.frozenZones.count
    return
      "the server's data of \(count) \(count == 1 ? "tree" : "trees") failed verification; what is in it is neither "
      + "sent nor received"
  }

  /// Sends and receives changes, unless `zdc-todo serve` runs on the same database and does so.
  ///
  /// - Returns: The number of lists and tasks that could not be read, or nil if the server was not reached.
  func sync(_ manager: ZDCManager, _ account: Account) async throws -> Int? {
    do {
      return try await manager.sync(account.user)
    } catch is ZDCTransportError {
      Output.note("zdc-todo: the server cannot be reached")
      return nil
    } catch let error as ZDCError where error.code == .syncedElsewhere {
      return nil
    } catch let error as ZDCSecurityError {
      // A frozen tree can be read and changed, and `close` reports it. The next sync skips it, and sends the others.
      guard try await account.session.syncManager.frozenZones(localUserID: account.user).isEmpty else { return 0 }
      throw error
    }
  }

  func chosen(_ manager: ZDCManager) async throws -> Account {
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
    guard let list = try await similarLists(title).first else {
      throw Failure(.noInput, "noList", "no list has the title \(title.displayed)")
    }
    return list
  }

  private func similarLists(_ title: String) async throws -> [ListItem] {
    let lists = try await screen().lists
    let matches = lists.filter { $0.title == title }
    return matches.isEmpty ? lists.filter { $0.title.lowercased() == title.lowercased() } : matches
  }

  /// Finds a task by its number, its title, or the beginning of its title.
  fileprivate func task(_ name: String, in list: ListItem) async throws -> String {
    let tasks = try await screen(list: list.id).tasks
    let (number, numbered) = (Int(name), try await numberedTasks(inList: list.id))
    if let number, (1...max(numbered.count, 1)).contains(number), !numbered.isEmpty {
      let id = numbered[number - 1]
      guard tasks.contains(where: { $0.id == id }) else {
        throw Failure(.noInput, "noTask", "another device deleted or moved task \(name) of \(list.title.displayed)")
      }
      return id
    }
    let exact = tasks.filter { $0.task?.title == name }
    let isPrefix = exact.isEmpty && number == nil
    let matches = isPrefix ? tasks.filter { $0.task?.title.hasPrefix(name) == true } : exact
    guard let task = matches.first else {
      if let number {
        throw Failure(
          .noInput, "noNumber", "no task was shown as number \(number); run `zdc-todo tasks` with the list's title")
      }
      throw Failure(.noInput, "noTask", "\(list.title.displayed) has no task \(name.displayed)")
    }
    guard matches.count == 1 else {
      throw Failure(.usage, "ambiguous", "\(matches.count) tasks match \(name.displayed); use the number of one")
    }
    return task.id
  }
}
