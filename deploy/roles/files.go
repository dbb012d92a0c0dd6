package roles

import (
	"fmt"
	"io"
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
	warnEvery   = time.Minute
)

// leastFiles is what an instance needs before its first client: one process with two venues has some 450 open, of the log, the
// engine and the connections of its own roles, and more while parts are merged.
const leastFiles = 768

// enoughFiles refuses to start where the roles would keep each other from opening files, again and again.
func enoughFiles() error {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil || limit.Cur >= leastFiles {
		return nil // where the limit is not known, there may be none
	}
	return fmt.Errorf("this process may open %d files, and needs %d before its first client: allow at least 4096 with ulimit -n, or LimitNOFILE of systemd", limit.Cur, leastFiles)
}

// refusal is what a connection is answered that comes while files are short, before its request is read: any client of HTTP
// understands it. A TLS connection is closed without a response.
const refusal = "HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/json\r\nRetry-After: 5\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s"

// refusalBody is the body of that answer, as others are.
const refusalBody = `{"error":{"code":"OVERLOADED","message":"too many connections are open; try again in some seconds","retryAfter":5}}`

// sparingListener ends connections at once while the process has few files left to open.
type sparingListener struct {
	net.Listener
	// most is the first file descriptor that no client gets; the system gives each the lowest that is free.
	most   uintptr
	log    *slog.Logger
	warned atomic.Int64
	// plain means that who connects speaks HTTP in the clear.
	plain bool
	// lingering holds a value for each refused connection that is waited for.
	lingering chan struct{}
}

// spareFiles bounds what the clients of a listener may take of the files that this process may open. With plain they speak
// HTTP, and are reported.
func spareFiles(l net.Listener, plain bool, log *slog.Logger) net.Listener {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		return l
	}
	return newSparingListener(l, uintptr(limit.Cur-min(limit.Cur/filesShare, filesSpared)), plain, log)
}

func newSparingListener(l net.Listener, most uintptr, plain bool, log *slog.Logger) *sparingListener {
	return &sparingListener{Listener: l, most: most, plain: plain, log: log, lingering: make(chan struct{}, mostLingering)}
}

// Accept returns the next connection that leaves enough.
func (l *sparingListener) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil || !l.short(conn) {
			return conn, err
		}
		l.refuse(conn)
		if now := time.Now().UnixNano(); now-l.warned.Load() >= int64(warnEvery) {
			l.warned.Store(now)
			l.log.Error("too many open files: new connections are closed at once; raise the limit with ulimit -n",
				"listen", l.Addr().String(), "for_clients", l.most)
		}
	}
}

// refuse answers a connection and ends it. A request that has come or is on its way is read for as long as lingering allows:
// closed before, the connection would be reset, and the answer with it.
func (l *sparingListener) refuse(conn net.Conn) {
	_ = conn.SetDeadline(time.Now().Add(lingerFor))
	if !l.plain {
		_ = conn.Close()
		return
	}
	// It fits into the socket's buffer, so nobody is waited for.
	if _, err := fmt.Fprintf(conn, refusal, len(refusalBody), refusalBody); err != nil {
		_ = conn.Close()
		return
	}
	select {
	case l.lingering <- struct{}{}:
	default: // too many are waited for already
		_ = conn.Close()
		return
	}
	go func() {
		defer func() { <-l.lingering }()
		defer conn.Close()
		if half, ok := conn.(interface{ CloseWrite() error }); ok && half.CloseWrite() == nil {
			_, _ = io.Copy(io.Discard, io.LimitReader(conn, lingerBytes))
		}
	}()
}

// How many refused connections are waited for at a time, each for how long and how many bytes.
const (
	mostLingering = 32
	lingerFor     = time.Second
	lingerBytes   = 64 << 10
)

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
