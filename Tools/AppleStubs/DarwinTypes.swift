// The types of Darwin's C library that the sources use, with the widths that Apple's headers give them. A separate
// module: in one module, Swift does not allow a type and a function of the same name (`stat`, `flock`, `sigaction`).

public typealias mode_t = UInt16
public typealias dev_t = Int32
public typealias nlink_t = UInt16
public typealias off_t = Int64
public typealias pid_t = Int32
public typealias uid_t = UInt32
public typealias gid_t = UInt32
public typealias time_t = Int
public typealias suseconds_t = Int32
public typealias socklen_t = UInt32
public typealias sa_family_t = UInt8
public typealias in_port_t = UInt16
public typealias in_addr_t = UInt32
public typealias rlim_t = UInt64
public typealias nfds_t = UInt32
public typealias tcflag_t = UInt
public typealias sigset_t = UInt32
public typealias pthread_key_t = UInt
public typealias sig_t = @convention(c) (Int32) -> Void

public struct timespec {
  public var tv_sec: time_t
  public var tv_nsec: Int
  public init() { (tv_sec, tv_nsec) = (0, 0) }
  public init(tv_sec: time_t, tv_nsec: Int) { (self.tv_sec, self.tv_nsec) = (tv_sec, tv_nsec) }
}

public struct timeval {
  public var tv_sec: time_t = 0
  public var tv_usec: suseconds_t = 0
  public init() {}
  public init(tv_sec: time_t, tv_usec: suseconds_t) { (self.tv_sec, self.tv_usec) = (tv_sec, tv_usec) }
}

public struct stat {
  public var st_dev: dev_t = 0
  public var st_mode: mode_t = 0
  public var st_nlink: nlink_t = 0
  public var st_ino: UInt64 = 0
  public var st_uid: uid_t = 0
  public var st_gid: gid_t = 0
  public var st_mtimespec = timespec()
  public var st_ctimespec = timespec()
  public var st_size: off_t = 0
  public init() {}
}

public struct flock {
  public var l_start: off_t = 0
  public var l_len: off_t = 0
  public var l_pid: pid_t = 0
  public var l_type: Int16 = 0
  public var l_whence: Int16 = 0
  public init() {}
}

public struct dirent {
  public var d_ino: UInt64 = 0
  public var d_namlen: UInt16 = 0
  public var d_type: UInt8 = 0
  public var d_name: (CChar, CChar, CChar, CChar) = (0, 0, 0, 0)
  public init() {}
}

public struct DIR {}

public struct rlimit {
  public var rlim_cur: rlim_t = 0
  public var rlim_max: rlim_t = 0
  public init() {}
  public init(rlim_cur: rlim_t, rlim_max: rlim_t) { (self.rlim_cur, self.rlim_max) = (rlim_cur, rlim_max) }
}

public struct pollfd {
  public var fd: Int32 = 0
  public var events: Int16 = 0
  public var revents: Int16 = 0
  public init() {}
  public init(fd: Int32, events: Int16, revents: Int16) {
    (self.fd, self.events, self.revents) = (fd, events, revents)
  }
}

public struct winsize {
  public var ws_row: UInt16 = 0
  public var ws_col: UInt16 = 0
  public init() {}
}

public struct termios {
  public var c_iflag: tcflag_t = 0
  public var c_oflag: tcflag_t = 0
  public var c_cflag: tcflag_t = 0
  public var c_lflag: tcflag_t = 0
  public init() {}
}

public struct __sigaction_u {
  public var __sa_handler: sig_t!
  public init() {}
  public init(__sa_handler: sig_t!) { self.__sa_handler = __sa_handler }
}

public struct sigaction {
  public var __sigaction_u: DarwinTypes.__sigaction_u = .init()
  public var sa_mask: sigset_t = 0
  public var sa_flags: Int32 = 0
  public init() {}
}

public struct in_addr {
  public var s_addr: in_addr_t = 0
  public init() {}
  public init(s_addr: in_addr_t) { self.s_addr = s_addr }
}

public struct in6_addr {
  public init() {}
}

public struct sockaddr {
  public var sa_len: UInt8 = 0
  public var sa_family: sa_family_t = 0
  public init() {}
}

public struct sockaddr_in {
  public var sin_len: UInt8 = 0
  public var sin_family: sa_family_t = 0
  public var sin_port: in_port_t = 0
  public var sin_addr = in_addr()
  public init() {}
}
