package sqlport

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// confine limits this process, and then restarts the program inside the limits: Landlock binds the thread that asks
// for it and what that thread executes. It returns only with an error, or where the kernel has no Landlock: then the
// memory is limited and nothing else.
func confine(o childOptions) error {
	runtime.LockOSThread()
	if o.DataLimit > 0 && memoryLimited {
		limit := &unix.Rlimit{Cur: uint64(o.DataLimit), Max: uint64(o.DataLimit)}
		if err := unix.Setrlimit(unix.RLIMIT_DATA, limit); err != nil {
			return fmt.Errorf("limiting the memory: %w", err)
		}
	}
	_ = unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{})
	// If memory is short for all, this process goes first.
	_ = os.WriteFile("/proc/self/oom_score_adj", []byte(strconv.Itoa(1000)), 0)
	abi, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if errno != 0 {
		return errNoSandbox
	}
	if err := restrict(int(abi), o); err != nil {
		return fmt.Errorf("confining the SQL process: %w", err)
	}
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("confining the SQL process: %w", err)
	}
	return fmt.Errorf("starting the confined SQL process: %w", syscall.Exec(self, os.Args, append(os.Environ(), confinedVariable+"=landlock "+strconv.Itoa(int(abi)))))
}

// yield makes all threads of this process nicer. A thread that is made later takes it over from its maker.
func yield() {
	for again := true; again; {
		again = false
		threads, err := os.ReadDir("/proc/self/task")
		if err != nil {
			return
		}
		for _, thread := range threads {
			id, err := strconv.Atoi(thread.Name())
			if err != nil {
				continue
			}
			// The kernel answers 20 less the niceness; an error means that the thread has ended.
			if priority, err := unix.Getpriority(unix.PRIO_PROCESS, id); err == nil && priority != 20-niceness {
				again = unix.Setpriority(unix.PRIO_PROCESS, id, niceness) == nil || again
			}
		}
	}
}

const (
	readAccess = unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_READ_DIR
	ownAccess  = readAccess | unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_REMOVE_DIR | unix.LANDLOCK_ACCESS_FS_REMOVE_FILE |
		unix.LANDLOCK_ACCESS_FS_MAKE_DIR | unix.LANDLOCK_ACCESS_FS_MAKE_REG | unix.LANDLOCK_ACCESS_FS_MAKE_SYM
	runAccess  = unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_EXECUTE
	fileAccess = unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_EXECUTE |
		unix.LANDLOCK_ACCESS_FS_TRUNCATE // what a rule of a single file may allow
)

// restrict applies the rules of the kernel's version of Landlock to this thread.
func restrict(abi int, o childOptions) error {
	handled := unix.LandlockRulesetAttr{Handled_access_fs: 1<<13 - 1}
	if abi >= 2 {
		handled.Handled_access_fs |= unix.LANDLOCK_ACCESS_FS_REFER
	}
	if abi >= 3 {
		handled.Handled_access_fs |= unix.LANDLOCK_ACCESS_FS_TRUNCATE
	}
	size := unsafe.Sizeof(handled.Handled_access_fs)
	if abi >= 4 { // none of it is granted below
		handled.Handled_access_net = unix.LANDLOCK_ACCESS_NET_BIND_TCP | unix.LANDLOCK_ACCESS_NET_CONNECT_TCP
		size = unsafe.Offsetof(handled.Handled_access_net) + unsafe.Sizeof(handled.Handled_access_net)
	}
	if abi >= 6 {
		handled.Scoped = unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET | unix.LANDLOCK_SCOPE_SIGNAL
		size = unsafe.Offsetof(handled.Scoped) + unsafe.Sizeof(handled.Scoped)
	}
	fd, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&handled)), size, 0)
	if errno != 0 {
		return fmt.Errorf("making the rules: %w", errno)
	}
	defer unix.Close(int(fd))
	self, err := os.Executable()
	if err != nil {
		return err
	}
	own := uint64(ownAccess)
	if abi >= 2 {
		own |= unix.LANDLOCK_ACCESS_FS_REFER // renames between its folders
	}
	if abi >= 3 {
		own |= unix.LANDLOCK_ACCESS_FS_TRUNCATE
	}
	rules := []struct {
		path   string
		access uint64
	}{
		{o.Dir, own}, {o.Tables, readAccess}, {o.Library, runAccess}, {self, runAccess},
		{"/lib64/ld-linux-x86-64.so.2", runAccess}, {"/lib/ld-linux-aarch64.so.1", runAccess}, {"/lib/ld-musl-x86_64.so.1", runAccess},
		{"/lib", readAccess}, {"/lib64", readAccess}, {"/usr/lib", readAccess}, {"/usr/lib64", readAccess},
		{"/etc/ld.so.cache", unix.LANDLOCK_ACCESS_FS_READ_FILE}, {"/etc/localtime", unix.LANDLOCK_ACCESS_FS_READ_FILE},
		{"/usr/share/zoneinfo", readAccess}, {"/proc", readAccess}, {"/sys/fs/cgroup", readAccess}, {"/sys/devices/system", readAccess},
		{"/dev/null", unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_WRITE_FILE}, {"/dev/urandom", unix.LANDLOCK_ACCESS_FS_READ_FILE},
	}
	for _, rule := range rules {
		if err := grant(int(fd), rule.path, rule.access&handled.Handled_access_fs); err != nil {
			return fmt.Errorf("granting %s: %w", rule.path, err)
		}
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("giving up new privileges: %w", err)
	}
	if _, _, errno := unix.Syscall(unix.SYS_LANDLOCK_RESTRICT_SELF, fd, 0, 0); errno != 0 {
		return fmt.Errorf("applying the rules: %w", errno)
	}
	return nil
}

// grant allows access to path and what lies beneath it; a path that is not there needs no rule.
func grant(ruleset int, path string, access uint64) error {
	path, err := filepath.EvalSymlinks(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		access &= fileAccess
	}
	parent, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(parent)
	attr := unix.LandlockPathBeneathAttr{Allowed_access: access, Parent_fd: int32(parent)}
	if _, _, errno := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, uintptr(ruleset), unix.LANDLOCK_RULE_PATH_BENEATH, uintptr(unsafe.Pointer(&attr)), 0, 0, 0); errno != 0 {
		return errno
	}
	return nil
}
