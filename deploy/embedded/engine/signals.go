//go:build linux || darwin

package engine

import (
	"runtime"
	"sync"
	"syscall"
	"unsafe"
)

// fatalSignals are the ones whose handlers the Go runtime cannot do without (nil dereferences, preemption) and the
// rest of the set that the library touches.
var fatalSignals = []syscall.Signal{
	syscall.SIGABRT, syscall.SIGSEGV, syscall.SIGILL, syscall.SIGBUS, syscall.SIGSYS, syscall.SIGFPE,
	syscall.SIGTSTP, syscall.SIGTRAP, syscall.SIGURG, syscall.SIGPROF, syscall.SIGPIPE,
	syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT,
}

// signalAction holds a struct sigaction of any platform: 152 bytes in glibc, 16 on macOS.
type signalAction [256]byte

var signalMu sync.Mutex

// keepSignals runs fn and puts back every handler that it replaced.
func (l *library) keepSignals(fn func()) {
	signalMu.Lock()
	defer signalMu.Unlock()
	before := make([]signalAction, len(fatalSignals))
	for i, s := range fatalSignals {
		l.sigaction(int32(s), nil, unsafe.Pointer(&before[i]))
	}
	fn()
	for i, s := range fatalSignals {
		l.sigaction(int32(s), unsafe.Pointer(&before[i]), nil)
	}
}

// ignoreStackSignal disarms the handler by which system.stack_trace would interrupt every thread of the process. It
// would run on whatever stack the thread has, and a goroutine's is too small. Only Linux has it, as glibc's SIGRTMIN.
func (l *library) ignoreStackSignal() {
	const stackSignal, ignore = 34, 1
	if runtime.GOOS == "linux" {
		action := signalAction{ignore}
		l.sigaction(stackSignal, unsafe.Pointer(&action), nil)
	}
}
