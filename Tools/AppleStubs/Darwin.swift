// Functions and constants of Darwin's C library that the sources use, as Swift imports them from Apple's headers. Only
// their types matter: nothing here ever runs.

@_exported import DarwinTypes

// MARK: Errors

public var errno: Int32 {
  get { 0 }
  set {}
}
public func strerror(_ number: Int32) -> UnsafeMutablePointer<CChar>! { nil }
public let EACCES: Int32 = 0
public let EAGAIN: Int32 = 0
public let EDQUOT: Int32 = 0
public let EEXIST: Int32 = 0
public let EFBIG: Int32 = 0
public let EINTR: Int32 = 0
public let EISDIR: Int32 = 0
public let ELOOP: Int32 = 0
public let EMFILE: Int32 = 0
public let ENFILE: Int32 = 0
public let ENOENT: Int32 = 0
public let ENOSPC: Int32 = 0
public let ENOTDIR: Int32 = 0
public let EPERM: Int32 = 0
public let EPIPE: Int32 = 0
public let EROFS: Int32 = 0
public let EWOULDBLOCK: Int32 = 0
public let EXDEV: Int32 = 0
public let ENOTSUP: Int32 = 0
public let ENOSYS: Int32 = 0
public let EMLINK: Int32 = 0
public let ENOTEMPTY: Int32 = 0
public let ENAMETOOLONG: Int32 = 0
public let EINVAL: Int32 = 0

// MARK: Memory

public func strdup(_ text: UnsafePointer<CChar>!) -> UnsafeMutablePointer<CChar>! { nil }
public func free(_ pointer: UnsafeMutableRawPointer!) {}

// MARK: Libraries

public let RTLD_NOW: Int32 = 0
public let RTLD_LOCAL: Int32 = 0
public func dlopen(_ path: UnsafePointer<CChar>!, _ mode: Int32) -> UnsafeMutableRawPointer! { nil }
public func dlsym(_ handle: UnsafeMutableRawPointer!, _ symbol: UnsafePointer<CChar>!) -> UnsafeMutableRawPointer! {
  nil
}

// MARK: Files

public let O_RDONLY: Int32 = 0
public let O_WRONLY: Int32 = 0
public let O_RDWR: Int32 = 0
public let O_CREAT: Int32 = 0
public let O_EXCL: Int32 = 0
public let O_CLOEXEC: Int32 = 0
public let O_NOFOLLOW: Int32 = 0
public let O_DIRECTORY: Int32 = 0
public let O_NONBLOCK: Int32 = 0
public let O_TRUNC: Int32 = 0
public let STDIN_FILENO: Int32 = 0
public let STDOUT_FILENO: Int32 = 1
public let STDERR_FILENO: Int32 = 2
public let SEEK_SET: Int32 = 0
public let SEEK_CUR: Int32 = 1
public let SEEK_END: Int32 = 2
public let LOCK_SH: Int32 = 0
public let LOCK_EX: Int32 = 0
public let LOCK_NB: Int32 = 0
public let LOCK_UN: Int32 = 0
public let F_RDLCK: Int32 = 0
public let F_WRLCK: Int32 = 0
public let F_UNLCK: Int32 = 0
public let F_GETFL: Int32 = 0
public let F_SETFL: Int32 = 0
public let F_GETFD: Int32 = 0
public let F_SETFD: Int32 = 0
public let F_FULLFSYNC: Int32 = 0
public let FD_CLOEXEC: Int32 = 0
public let F_OK: Int32 = 0
public let R_OK: Int32 = 0
public let W_OK: Int32 = 0
public let NAME_MAX: Int32 = 255
public let AT_FDCWD: Int32 = 0
public let AT_SYMLINK_NOFOLLOW: Int32 = 0
public let AT_REMOVEDIR: Int32 = 0
public let UTIME_OMIT: Int32 = 0
public let S_IFMT: mode_t = 0
public let S_IFREG: mode_t = 0
public let S_IFDIR: mode_t = 0
public let S_IFLNK: mode_t = 0
public let S_IFIFO: mode_t = 0
public let S_IFSOCK: mode_t = 0
public let S_IFCHR: mode_t = 0
public let S_IFBLK: mode_t = 0

public func open(_ path: UnsafePointer<CChar>, _ oflag: Int32) -> Int32 { 0 }
public func open(_ path: UnsafePointer<CChar>, _ oflag: Int32, _ mode: mode_t) -> Int32 { 0 }
public func openat(_ fd: Int32, _ path: UnsafePointer<CChar>, _ oflag: Int32) -> Int32 { 0 }
public func openat(_ fd: Int32, _ path: UnsafePointer<CChar>, _ oflag: Int32, _ mode: mode_t) -> Int32 { 0 }
public func fcntl(_ fd: Int32, _ cmd: Int32) -> Int32 { 0 }
public func fcntl(_ fd: Int32, _ cmd: Int32, _ value: Int32) -> Int32 { 0 }
public func fcntl(_ fd: Int32, _ cmd: Int32, _ ptr: UnsafeMutableRawPointer) -> Int32 { 0 }
@discardableResult public func close(_ fd: Int32) -> Int32 { 0 }
@discardableResult public func read(_ fd: Int32, _ buffer: UnsafeMutableRawPointer!, _ count: Int) -> Int { 0 }
@discardableResult public func write(_ fd: Int32, _ buffer: UnsafeRawPointer!, _ count: Int) -> Int { 0 }
@discardableResult
public func pread(_ fd: Int32, _ buffer: UnsafeMutableRawPointer!, _ count: Int, _ offset: off_t) -> Int { 0 }
@discardableResult
public func pwrite(_ fd: Int32, _ buffer: UnsafeRawPointer!, _ count: Int, _ offset: off_t) -> Int { 0 }
@discardableResult public func lseek(_ fd: Int32, _ offset: off_t, _ whence: Int32) -> off_t { 0 }
@discardableResult public func fsync(_ fd: Int32) -> Int32 { 0 }
@discardableResult public func ftruncate(_ fd: Int32, _ length: off_t) -> Int32 { 0 }
@discardableResult public func fchmod(_ fd: Int32, _ mode: mode_t) -> Int32 { 0 }
@discardableResult public func unlink(_ path: UnsafePointer<CChar>!) -> Int32 { 0 }
@discardableResult public func unlinkat(_ fd: Int32, _ path: UnsafePointer<CChar>!, _ flag: Int32) -> Int32 { 0 }
@discardableResult public func rmdir(_ path: UnsafePointer<CChar>!) -> Int32 { 0 }
@discardableResult public func mkdir(_ path: UnsafePointer<CChar>!, _ mode: mode_t) -> Int32 { 0 }
@discardableResult public func mkdirat(_ fd: Int32, _ path: UnsafePointer<CChar>!, _ mode: mode_t) -> Int32 { 0 }
@discardableResult public func link(_ old: UnsafePointer<CChar>!, _ new: UnsafePointer<CChar>!) -> Int32 { 0 }
@discardableResult
public func linkat(
  _ fromfd: Int32, _ from: UnsafePointer<CChar>!, _ tofd: Int32, _ to: UnsafePointer<CChar>!, _ flag: Int32
) -> Int32 { 0 }
@discardableResult public func rename(_ old: UnsafePointer<CChar>!, _ new: UnsafePointer<CChar>!) -> Int32 { 0 }
@discardableResult
public func renameat(
  _ fromfd: Int32, _ from: UnsafePointer<CChar>!, _ tofd: Int32, _ to: UnsafePointer<CChar>!
) -> Int32 { 0 }
@discardableResult public func access(_ path: UnsafePointer<CChar>!, _ mode: Int32) -> Int32 { 0 }
@discardableResult public func mkstemp(_ template: UnsafeMutablePointer<CChar>!) -> Int32 { 0 }
@discardableResult public func stat(_ path: UnsafePointer<CChar>!, _ buffer: UnsafeMutablePointer<stat>!) -> Int32 { 0 }
@discardableResult public func lstat(_ path: UnsafePointer<CChar>!, _ buffer: UnsafeMutablePointer<stat>!) -> Int32 {
  0
}
@discardableResult public func fstat(_ fd: Int32, _ buffer: UnsafeMutablePointer<stat>!) -> Int32 { 0 }
@discardableResult
public func fstatat(
  _ fd: Int32, _ path: UnsafePointer<CChar>!, _ buffer: UnsafeMutablePointer<stat>!, _ flag: Int32
) -> Int32 { 0 }
@discardableResult public func futimens(_ fd: Int32, _ times: UnsafePointer<timespec>!) -> Int32 { 0 }
@discardableResult public func flock(_ fd: Int32, _ operation: Int32) -> Int32 { 0 }
public func opendir(_ path: UnsafePointer<CChar>!) -> UnsafeMutablePointer<DIR>! { nil }
public func fdopendir(_ fd: Int32) -> UnsafeMutablePointer<DIR>! { nil }
public func readdir(_ folder: UnsafeMutablePointer<DIR>!) -> UnsafeMutablePointer<dirent>! { nil }
@discardableResult public func closedir(_ folder: UnsafeMutablePointer<DIR>!) -> Int32 { 0 }

// MARK: Memory and randomness

public func strlen(_ text: UnsafePointer<CChar>!) -> Int { 0 }
public func memcmp(_ first: UnsafeRawPointer!, _ second: UnsafeRawPointer!, _ count: Int) -> Int32 { 0 }
public func memchr(_ bytes: UnsafeRawPointer!, _ value: Int32, _ count: Int) -> UnsafeMutableRawPointer! { nil }
public func getentropy(_ buffer: UnsafeMutableRawPointer!, _ count: Int) -> Int32 { 0 }

// MARK: Processes, signals and terminals

public let SIGINT: Int32 = 0
public let SIGTERM: Int32 = 0
public let SIGPIPE: Int32 = 0
public let SIGHUP: Int32 = 0
public let SIGKILL: Int32 = 0
public let SIGXFSZ: Int32 = 0
public let RLIMIT_CORE: Int32 = 0
public let RLIMIT_NOFILE: Int32 = 0
public let SIG_IGN: sig_t = { _ in }
public let SIG_DFL: sig_t? = nil
public let POLLIN: Int32 = 0
public let TCSAFLUSH: Int32 = 0
public let ECHO: Int32 = 0
public let TIOCGWINSZ: UInt = 0

public func exit(_ status: Int32) -> Never { while true {} }
public func _exit(_ status: Int32) -> Never { while true {} }
public func abort() -> Never { while true {} }
public func getpid() -> pid_t { 0 }
public func geteuid() -> uid_t { 0 }
public func kill(_ process: pid_t, _ signal: Int32) -> Int32 { 0 }
public func raise(_ signal: Int32) -> Int32 { 0 }
public func umask(_ mask: mode_t) -> mode_t { 0 }
public func isatty(_ fd: Int32) -> Int32 { 0 }
@discardableResult public func usleep(_ microseconds: UInt32) -> Int32 { 0 }
@discardableResult public func signal(_ signal: Int32, _ handler: sig_t?) -> sig_t? { nil }
@discardableResult
public func sigaction(
  _ signal: Int32, _ new: UnsafePointer<sigaction>!, _ old: UnsafeMutablePointer<sigaction>!
) -> Int32 { 0 }
@discardableResult public func getrlimit(_ resource: Int32, _ limit: UnsafeMutablePointer<rlimit>!) -> Int32 { 0 }
@discardableResult public func setrlimit(_ resource: Int32, _ limit: UnsafePointer<rlimit>!) -> Int32 { 0 }
public func ioctl(_ fd: Int32, _ request: UInt, _ ptr: UnsafeMutableRawPointer) -> Int32 { 0 }
public func poll(_ fds: UnsafeMutablePointer<pollfd>!, _ count: nfds_t, _ timeout: Int32) -> Int32 { 0 }
public func pipe(_ fds: UnsafeMutablePointer<Int32>!) -> Int32 { 0 }
public func tcgetattr(_ fd: Int32, _ termios: UnsafeMutablePointer<termios>!) -> Int32 { 0 }
public func tcsetattr(_ fd: Int32, _ actions: Int32, _ termios: UnsafePointer<termios>!) -> Int32 { 0 }

// MARK: Time and threads

public struct clockid_t: Sendable {}
public let CLOCK_REALTIME = clockid_t()
@discardableResult public func clock_gettime(_ clock: clockid_t, _ time: UnsafeMutablePointer<timespec>!) -> Int32 { 0 }
public func pthread_key_create(
  _ key: UnsafeMutablePointer<pthread_key_t>!, _ destructor: (@convention(c) (UnsafeMutableRawPointer) -> Void)?
) -> Int32 { 0 }
public func pthread_getspecific(_ key: pthread_key_t) -> UnsafeMutableRawPointer? { nil }
@discardableResult public func pthread_setspecific(_ key: pthread_key_t, _ value: UnsafeRawPointer?) -> Int32 { 0 }

// MARK: Sockets

public let AF_INET: Int32 = 0
public let AF_INET6: Int32 = 0
public let SOCK_STREAM: Int32 = 0
public let SHUT_RDWR: Int32 = 0
public let SOL_SOCKET: Int32 = 0
public let SO_NOSIGPIPE: Int32 = 0
public let SO_REUSEADDR: Int32 = 0
public let SO_RCVBUF: Int32 = 0
public let SO_RCVTIMEO: Int32 = 0

public func socket(_ domain: Int32, _ type: Int32, _ protocol: Int32) -> Int32 { 0 }
@discardableResult
public func setsockopt(
  _ socket: Int32, _ level: Int32, _ name: Int32, _ value: UnsafeRawPointer!, _ length: socklen_t
) -> Int32 { 0 }
public func bind(_ socket: Int32, _ address: UnsafePointer<sockaddr>!, _ length: socklen_t) -> Int32 { 0 }
public func listen(_ socket: Int32, _ backlog: Int32) -> Int32 { 0 }
public func accept(
  _ socket: Int32, _ address: UnsafeMutablePointer<sockaddr>!, _ length: UnsafeMutablePointer<socklen_t>!
) -> Int32 { 0 }
public func connect(_ socket: Int32, _ address: UnsafePointer<sockaddr>!, _ length: socklen_t) -> Int32 { 0 }
public func getsockname(
  _ socket: Int32, _ address: UnsafeMutablePointer<sockaddr>!, _ length: UnsafeMutablePointer<socklen_t>!
) -> Int32 { 0 }
@discardableResult public func shutdown(_ socket: Int32, _ how: Int32) -> Int32 { 0 }
@discardableResult
public func recv(_ socket: Int32, _ buffer: UnsafeMutableRawPointer!, _ count: Int, _ flags: Int32) -> Int { 0 }
@discardableResult
public func send(_ socket: Int32, _ buffer: UnsafeRawPointer!, _ count: Int, _ flags: Int32) -> Int { 0 }
public func inet_pton(_ family: Int32, _ text: UnsafePointer<CChar>!, _ address: UnsafeMutableRawPointer!) -> Int32 {
  0
}
