//go:build linux || darwin

package sqlport

import (
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// Connections between the server and its child have no address that somebody else could use: for each, the server makes
// a pair of sockets and sends one of them over the control socket, which the child inherits.

// socketBytes is what a connection holds that its reader has not taken yet: some pieces of an answer, so that neither process waits
// for the other with each. The system may allow less.
const socketBytes = 1 << 20

// socketPair makes two connected sockets that programs started from here do not inherit.
func socketPair() (ours *net.UnixConn, theirs *os.File, err error) {
	syscall.ForkLock.RLock()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err == nil {
		for _, fd := range fds {
			unix.CloseOnExec(fd)
			_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_SNDBUF, socketBytes)
		}
	}
	syscall.ForkLock.RUnlock()
	if err != nil {
		return nil, nil, fmt.Errorf("making a pair of sockets: %w", err)
	}
	file := os.NewFile(uintptr(fds[0]), "socket")
	defer file.Close()
	conn, err := net.FileConn(file)
	if err != nil {
		_ = unix.Close(fds[1])
		return nil, nil, fmt.Errorf("making a pair of sockets: %w", err)
	}
	return conn.(*net.UnixConn), os.NewFile(uintptr(fds[1]), "socket"), nil
}

// dialer hands the child connections over its control socket.
type dialer struct {
	mu      sync.Mutex
	control *net.UnixConn
}

func (d *dialer) dial() (net.Conn, error) {
	ours, theirs, err := socketPair()
	if err != nil {
		return nil, err
	}
	defer theirs.Close()
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, _, err := d.control.WriteMsgUnix([]byte{0}, unix.UnixRights(int(theirs.Fd())), nil); err != nil {
		_ = ours.Close()
		return nil, fmt.Errorf("connecting to the SQL process: %w", err)
	}
	return ours, nil
}

// listener is the child's side: what comes over the control socket is accepted.
type listener struct{ control *net.UnixConn }

// Accept waits for the next connection; the end of the control socket is the server's.
func (l listener) Accept() (net.Conn, error) {
	var one [1]byte
	oob := make([]byte, unix.CmsgSpace(4))
	n, oobn, _, _, err := l.control.ReadMsgUnix(one[:], oob)
	if err != nil {
		return nil, err
	}
	if n == 0 {
		return nil, net.ErrClosed
	}
	messages, err := unix.ParseSocketControlMessage(oob[:oobn])
	if err != nil || len(messages) != 1 {
		return nil, errors.Join(errors.New("the server sent no connection"), err)
	}
	fds, err := unix.ParseUnixRights(&messages[0])
	if err != nil || len(fds) != 1 {
		return nil, errors.Join(errors.New("the server sent no connection"), err)
	}
	unix.CloseOnExec(fds[0])
	file := os.NewFile(uintptr(fds[0]), "connection")
	defer file.Close()
	return net.FileConn(file)
}

func (l listener) Close() error   { return l.control.Close() }
func (l listener) Addr() net.Addr { return l.control.LocalAddr() }
