package roles

import (
	"log/slog"
	"net"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Of the files that a process may have open, clients are left three quarters, or all but filesSpared: the log and the engine
// open files at any time, and what they cannot open stops them.
const (
	filesShare  = 4
	filesSpared = 1024
	filesTold   = time.Minute
)

// sparingListener ends connections at once while the process has few files left to open.
type sparingListener struct {
	net.Listener
	// most is the first file descriptor that no client gets; the system gives each the lowest that is free.
	most uintptr
	log  *slog.Logger
	told atomic.Int64
}

// spareFiles bounds what the clients of a listener may take of the files that this process may open.
func spareFiles(l net.Listener, log *slog.Logger) net.Listener {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		return l
	}
	return &sparingListener{Listener: l, most: uintptr(limit.Cur - min(limit.Cur/filesShare, filesSpared)), log: log}
}

// Accept returns the next connection that leaves enough.
func (l *sparingListener) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil || !l.short(conn) {
			return conn, err
		}
		_ = conn.Close()
		if now := time.Now().UnixNano(); now-l.told.Load() >= int64(filesTold) {
			l.told.Store(now)
			l.log.Error("too many files are open: new connections are ended at once; allow more with ulimit -n",
				"listen", l.Addr().String(), "for_clients", l.most)
		}
	}
}

func (l *sparingListener) short(conn net.Conn) (short bool) {
	raw, ok := conn.(syscall.Conn)
	if !ok {
		return false
	}
	control, err := raw.SyscallConn()
	if err != nil {
		return false
	}
	_ = control.Control(func(descriptor uintptr) { short = descriptor >= l.most })
	return short
}
