internal import Foundation

#if canImport(Glibc)
  internal import Glibc
#elseif canImport(Musl)
  internal import Musl
#elseif canImport(Darwin)
  internal import Darwin
#endif

/// The terminal, if there is one, and the standard streams.
package enum Terminal {
  package static var isInputTerminal: Bool { isatty(STDIN_FILENO) == 1 }
  package static var isOutputTerminal: Bool { isatty(STDOUT_FILENO) == 1 }
  package static var isErrorTerminal: Bool { isatty(STDERR_FILENO) == 1 }

  package static var width: Int {
    var size = winsize()
    guard ioctl(STDERR_FILENO, UInt(TIOCGWINSZ), &size) == 0, size.ws_col > 0 else { return 80 }
    return Int(size.ws_col)
  }

  package static func writeError(_ text: String) {
    write(text, to: STDERR_FILENO)
  }

  /// Writes to standard output. Ends the program quietly if the reader has closed the pipe, as in `zdc tree | head`.
  package static func writeOutput(_ text: String) {
    write(text, to: STDOUT_FILENO)
  }

  private static func write(_ text: String, to descriptor: Int32) {
    var text = text
    text.withUTF8 { bytes in write(UnsafeRawBufferPointer(bytes), to: descriptor) }
  }

  package static func writeOutput(_ bytes: [UInt8]) {
    bytes.withUnsafeBytes { write($0, to: STDOUT_FILENO) }
  }

  private static func write(_ bytes: UnsafeRawBufferPointer, to descriptor: Int32) {
    var rest = bytes[...]
    while !rest.isEmpty {
      let count = Foundation.write(descriptor, UnsafeRawBufferPointer(rebasing: rest).baseAddress, rest.count)
      if count < 0 && (errno == EINTR || errno == EAGAIN) { continue }
      guard count > 0 else { return failed(descriptor) }
      rest = rest.dropFirst(count)
    }
  }

  /// Ends the program: lost results are not a success. Any line of output can fail, so this does not add `throws` to
  /// every signature.
  private static func failed(_ descriptor: Int32) {
    if errno == EPIPE { exit(ExitStatus.brokenPipe.rawValue) }
    guard descriptor == STDOUT_FILENO else { return }
    let error = ErrorReport(FileFailure.error("standard output"))
    writeError(error.text + "\n")
    exit(error.status.rawValue)
  }

  /// Prompts on the terminal and reads a line without echo.
  ///
  /// - Throws: ``CommandError`` if there is no terminal to prompt on.
  package static func readSecret(_ prompt: String) throws(CommandError) -> String {
    guard isInputTerminal else {
      throw CommandError(.usage, "noTerminal", "there is no terminal to prompt on", hint: "give the secret in a file")
    }
    writeError(prompt)
    var settings = termios()
    let isKnown = tcgetattr(STDIN_FILENO, &settings) == 0
    if isKnown {
      var silent = settings
      silent.c_lflag &= ~tcflag_t(ECHO)
      tcsetattr(STDIN_FILENO, TCSAFLUSH, &silent)
    }
    defer {
      if isKnown { tcsetattr(STDIN_FILENO, TCSAFLUSH, &settings) }
      writeError("\n")
    }
    return try readLine()
  }

  /// Prompts on the terminal and reads a line.
  ///
  /// - Throws: ``CommandError`` if there is no terminal to prompt on.
  package static func readLine(_ prompt: String) throws(CommandError) -> String {
    guard isInputTerminal else {
      throw CommandError(.usage, "noTerminal", "there is no terminal to prompt on", hint: "add --yes")
    }
    writeError(prompt)
    return try readLine()
  }

  /// Reads a line from the terminal, without its line ending.
  private static func readLine() throws(CommandError) -> String {
    var line: [UInt8] = []
    var buffer: [UInt8] = [0]
    while try read(STDIN_FILENO, &buffer) > 0 {
      if buffer[0] == 0x0A { return String(decoding: line, as: UTF8.self) }
      line.append(buffer[0])
    }
    guard !line.isEmpty else { throw CommandError(.usage, "noInput", "nothing was typed") }
    return String(decoding: line, as: UTF8.self)
  }

  /// Waits for input and reads up to the size of the buffer.
  ///
  /// - Returns: The number of bytes read; 0 at the end of the input.
  /// - Throws: ``CommandError`` with `interrupted` after a signal.
  static func read(_ descriptor: Int32, _ buffer: inout [UInt8]) throws(CommandError) -> Int {
    while true {
      var waiting = [
        pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0),
        pollfd(fd: Interruption.descriptor, events: Int16(POLLIN), revents: 0),
      ]
      let ready = poll(&waiting, 2, -1)
      if ready < 0 && errno == EINTR { continue }
      if waiting[1].revents & Int16(POLLIN) != 0 {
        throw CommandError(.tryAgain, "interrupted", "interrupted", hint: "nothing was changed; run it again")
      }
      let count = buffer.withUnsafeMutableBytes { Foundation.read(descriptor, $0.baseAddress, $0.count) }
      if count < 0 && errno == EINTR { continue }
      guard count >= 0 else { throw FileFailure.error("standard input", reading: true) }
      return count
    }
  }

  /// Reads all of standard input. A signal ends the wait for more.
  package static func readInput(limit: Int = .max) throws(CommandError) -> [UInt8] {
    try readAll(STDIN_FILENO, limit: limit)
  }

  /// Reads a secret from a file and removes trailing line endings; `-` is standard input.
  package static func readSecretFile(_ path: String) throws(CommandError) -> String {
    var bytes: [UInt8]
    if path == "-" {
      bytes = try readInput(limit: 65_536)
    } else {
      let descriptor = open(path, O_RDONLY | O_CLOEXEC)
      guard descriptor >= 0 else { throw FileFailure.error(path, reading: true) }
      defer { close(descriptor) }
      bytes = try readAll(descriptor, limit: 65_536)
    }
    while bytes.last == 0x0A || bytes.last == 0x0D { bytes.removeLast() }
    guard let text = String(validating: bytes, as: UTF8.self) else {
      throw CommandError(.data, "notText", "the secret is not UTF-8 text")
    }
    return text
  }

  private static func readAll(_ descriptor: Int32, limit: Int) throws(CommandError) -> [UInt8] {
    var all: [UInt8] = []
    var buffer = [UInt8](repeating: 0, count: 1 << 16)
    while true {
      let count = try read(descriptor, &buffer)
      if count == 0 { return all }
      all += buffer.prefix(count)
      guard all.count <= limit else { throw CommandError(.data, "tooLong", "the input is too long for a secret") }
    }
  }
}
