//go:build linux || darwin

package sqlport

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"syscall"
)

// try is what tryToLeave needs to know.
type try struct {
	Options         childOptions
	Secret, Address string
}

// tryToLeave confines this process as the one of SQL is, and prints what it can still do.
func tryToLeave(text string) {
	var o try
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		fmt.Println(err)
		return
	}
	if os.Getenv(confinedVariable) == "" {
		fmt.Println(confine(o.Options)) // comes back only if it failed
		return
	}
	report := func(what string, err error) {
		var errno syscall.Errno
		switch {
		case err == nil:
			fmt.Println(what + ": ok")
		case errors.As(err, &errno):
			fmt.Println(what + ": " + errno.Error())
		default:
			fmt.Println(what + ": " + err.Error())
		}
	}
	own, part := filepath.Join(o.Options.Dir, "x"), filepath.Join(o.Options.Tables, "part")
	report("write own", os.WriteFile(own, []byte("x"), 0o600))
	_, err := os.ReadFile(own)
	report("read own", err)
	_, err = os.ReadFile(part)
	report("read table", err)
	report("write table", os.WriteFile(part, []byte("x"), 0o600))
	_, err = os.ReadFile(o.Secret)
	report("read secret", err)
	_, err = os.ReadFile("/etc/passwd")
	report("read passwd", err)
	_, err = net.Dial("tcp", o.Address)
	report("connect", err)
	report("run", exec.Command("/bin/true").Run())
	memory, err := syscall.Mmap(-1, 0, 2<<30, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err == nil {
		_ = syscall.Munmap(memory)
	}
	report("memory", err)
	yield()
	var nice sync.WaitGroup
	nice.Go(func() { // on a thread of its own
		runtime.LockOSThread()
		var priority int
		if priority, err = syscall.Getpriority(syscall.PRIO_PROCESS, 0); err == nil && priority != 20-niceness {
			err = fmt.Errorf("%d", 20-priority)
		}
	})
	nice.Wait()
	report("niceness", err)
}
